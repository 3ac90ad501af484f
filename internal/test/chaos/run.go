// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/test/chaos/check"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// settings are what a run is made with.
type settings struct {
	crew

	seed     uint64
	site     string // standalone, sentinel, cluster or quorum
	duration time.Duration
	faults   []fault
	habits   habits
	rest     time.Duration // between two faults of a lane, on average
	blows    int           // of a lane, after which it rests for good; 0: any number
	calm     time.Duration // how long workers go on after the last fault
	GoRedis  bool          // workers have clients of go-redis
	build    string        // the commit of what is run; empty: unknown
	dir      string        // for servers and history; made anew
}

// A crew is who takes part in a run. Bounds on waiting follow from it.
type crew struct {
	Workers int
	Callers int // of each
	Keys    []string
	TTLs    []time.Duration
}

// defaultSettings has several callers for each key, and so many keys that most
// go from hand to hand while some are with a holder that is dead, paused or slow. With an even
// seed there are so many of both that a store makes requests of several callers together.
func defaultSettings(site string, seed uint64, duration time.Duration, dir string) settings {
	callers, keys := 24, make([]string, 32)
	if seed%2 == 0 {
		callers, keys = 96, make([]string, 320)
	}
	for i := range keys {
		keys[i] = "k" + strconv.Itoa(i+1)
	}
	s := settings{
		crew: crew{
			Workers: 4, Callers: callers, Keys: keys,
			TTLs: []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second},
		},
		seed: seed, site: site, duration: duration, faults: faultsAt(site), habits: everyday,
		rest: time.Second, dir: dir,
	}
	if site == quorum {
		s.hotKeys()
	}
	return s
}

// onlyJobs makes it a run of so many processes that run jobs and do nothing else.
func (s *settings) onlyJobs(processes int) {
	s.crew = crew{Workers: processes, Keys: jobKeys(), TTLs: []time.Duration{500 * time.Millisecond}}
	s.habits = habits{Jobs: true}
}

func (c crew) longestTTL() time.Duration { return slices.Max(c.TTLs) }

// limits are derived in docs/chaos.md.
func (c crew) limits() check.Limits {
	ttl := c.longestTTL()
	repair := ttl + ttl + 3*ttl/10 + ttl/10 + 3*time.Second + 2*time.Second
	turn := longestHold(c.TTLs) + ttl/10
	return check.Limits{Repair: repair, Turns: time.Duration(c.Workers*c.Callers)*turn + repair}
}

// A run is settings at work.
type run struct {
	settings
	file  *history.File // the nemesis' own part of the history
	store *site
	vault *servers.Redis
	rows  *database // nil: there is no PostgreSQL here
	seats []*seat

	clock  *wallClock // the server's; nil: the system's
	rivals int        // that there have been
}

// A seat is a place for a worker: when one is killed, another takes it.
type seat struct {
	name    string
	number  int
	times   int // that it was taken
	proxy   *proxy
	process *proc.Process
	stdin   io.Closer
}

// perform makes the whole run.
func perform(ctx context.Context, s settings) error {
	for _, dir := range []string{s.dir, s.historyDir(), s.ledgerDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	file, err := history.Create(s.historyDir(), "nemesis")
	if err != nil {
		return err
	}
	text, err := json.Marshal(s.crew)
	if err != nil {
		return err
	}
	file.Add(history.Record{Kind: history.Run, Seed: s.seed, Site: s.site, Crew: string(text), Build: s.build, End: history.Span(s.duration), Origin: history.Origin()})
	r := &run{settings: s, file: file}
	return errors.Join(r.perform(ctx), file.Close())
}

func (s settings) historyDir() string { return filepath.Join(s.dir, "history") }

func (s settings) ledgerDir() string { return filepath.Join(s.dir, "ledger") }

func (r *run) perform(ctx context.Context) error {
	defer r.close()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	attacking, stop := context.WithTimeout(ctx, r.duration)
	defer stop()
	problems := make(chan error, lanes)
	var attackers sync.WaitGroup
	for where := range lanes {
		attackers.Go(func() { // ends with the time for it
			if err := r.attack(attacking, where, r.faults); err != nil {
				problems <- err
				stop()
			}
		})
	}
	attackers.Wait()
	if r.blows == 0 { // there may be no fault at all
		<-attacking.Done()
	}
	select {
	case err := <-problems:
		return err
	default:
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// A message that a proxy has delayed can be on its way for so long, and Close waits only
	// a second for the last messages.
	(&blow{run: r, ctx: ctx}).wait(max(r.calm, r.longestTTL()))
	r.dismiss()
	if err := r.sweep(ctx); err != nil {
		return err
	}
	return r.collect(ctx)
}

// prepare starts the servers and the workers.
func (r *run) prepare(ctx context.Context) (err error) {
	var env []string
	if slices.ContainsFunc(r.faults, fault.turnsClock) {
		switch r.clock, err = makeClock(ctx, r.dir); {
		case err == nil:
			env = r.clock.environment()
		case !errors.Is(err, errNoClock) || os.Getenv("ASYNCLOCK_REQUIRE") == "1":
			return err
		default:
			fmt.Fprintln(os.Stderr, "chaos:", err)
			if r.faults = slices.DeleteFunc(slices.Clone(r.faults), fault.turnsClock); len(r.faults) == 0 {
				return err
			}
		}
	}
	if r.store, err = startSite(ctx, r.site, r.dir, env); err != nil {
		return err
	}
	if r.vault, err = servers.StartRedis(ctx, servers.Config{Dir: r.dir, Name: "vault"}); err != nil {
		return err
	}
	if r.habits.Rows > 0 {
		if r.rows, err = startDatabase(ctx); errors.Is(err, errNoDatabase) && os.Getenv("ASYNCLOCK_REQUIRE") != "1" {
			fmt.Fprintln(os.Stderr, "chaos:", err)
		} else if err != nil {
			return err
		}
	}
	for i := range r.Workers {
		p, err := startProxy()
		if err != nil {
			return err
		}
		s := &seat{name: fmt.Sprintf("worker %d", i+1), number: i + 1, proxy: p}
		r.seats = append(r.seats, s)
		if err := r.employ(s); err != nil {
			return err
		}
	}
	return nil
}

// employ starts a worker in a seat.
func (r *run) employ(s *seat) error {
	s.times++
	var rows string
	if r.rows != nil {
		rows = r.rows.url
	}
	text, err := json.Marshal(orders{
		Name: fmt.Sprintf("w%d.%d", s.number, s.times), History: r.historyDir(),
		Store: r.store.url, Proxy: s.proxy.addr(), Vault: r.vault.Addr, Ledger: r.ledgerDir(), Rows: rows,
		Keys: r.Keys, TTLs: r.TTLs, Callers: r.Callers, Habits: r.habits,
		GoRedis: r.GoRedis,
		Timers:  s.number == 1, // one suffices, since all do the same, and it makes a process slower
		Seed:    r.seed<<16 + uint64(s.number)<<8 + uint64(s.times),
	})
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if s.stdin != nil {
		_ = s.stdin.Close() // of a process that is dead
	}
	s.stdin = stdin
	p, err := proc.Start(cmd)
	if err != nil {
		return err
	}
	s.process = p
	return nil
}

func (r *run) close() {
	for _, s := range r.seats {
		if s.process != nil {
			_ = s.process.Kill()
		}
		if s.stdin != nil {
			_ = s.stdin.Close()
		}
		s.proxy.close()
	}
	if r.store != nil {
		r.store.Close()
	}
	if r.vault != nil {
		r.vault.Close()
	}
	if r.rows != nil {
		r.rows.Close()
	}
}
