// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/childproc"
	"github.com/asynclock/asynclock-go/store/redisstore"
	"github.com/asynclock/asynclock-go/store/sqlstore"
)

// A test binary that finds these in its environment is a child: it has one
// client and does what it is ordered to.
const (
	childURL    = "ASYNCLOCK_STORY_URL"
	childPrefix = "ASYNCLOCK_STORY_PREFIX"
	// childCertificates may be empty.
	childCertificates = "ASYNCLOCK_STORY_CERTIFICATES"
)

// An order is what a child is to do. It answers each with one report.
type order struct {
	Do  string // lock, queue, claim, unlock, look or bump
	Key string

	TTL time.Duration // to lock and queue with

	File   string // to bump
	Rounds int
}

// A report is what a child says of its lease.
type report struct {
	Token   int64
	Valid   bool
	Ended   bool          // its context has
	Lost    bool          // its error is ErrLost
	Stall   time.Duration // the longest since the last report
	Problem string
}

// A child is another process with a client of its own.
type child struct {
	p       *place
	process *childproc.Process
	orders  *json.Encoder
	reports *json.Decoder

	pausedAt time.Time
	paused   time.Duration // since the last report
}

// child starts one. It ends with the story.
func (p *place) child() *child {
	p.Helper()
	self, err := os.Executable()
	if err != nil {
		p.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childURL+"="+p.url, childPrefix+"="+p.corner, childCertificates+"="+p.certificates)
	cmd.Stderr = os.Stderr
	in, orders := pipe(p.T)
	reports, out := pipe(p.T)
	cmd.Stdin, cmd.Stdout = in, out
	process := launch(p.T, cmd)
	in.Close() // these ends are the child's; what is left of the other ones ends with it
	out.Close()
	return &child{
		p: p, process: process,
		orders: json.NewEncoder(orders), reports: json.NewDecoder(reports),
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// launch starts a process that ends with the test, or with this process should
// that be killed.
func launch(t *testing.T, cmd *exec.Cmd) *childproc.Process {
	t.Helper()
	process, err := childproc.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Kill(); err != nil {
			t.Error(err)
		}
	})
	return process
}

// does gives an order and waits for the report.
func (c *child) does(o order) report {
	c.p.Helper()
	c.tell(o)
	return c.hears()
}

// tell gives an order, which a paused child will find when it wakes up.
func (c *child) tell(o order) {
	c.p.Helper()
	if err := c.orders.Encode(o); err != nil {
		c.p.Fatal(err)
	}
}

func (c *child) hears() (r report) {
	c.p.Helper()
	if err := c.reports.Decode(&r); err != nil {
		c.p.Fatalf("the child does not report: %v", err)
	}
	if r.Problem != "" {
		c.p.Fatalf("the child reports: %s", r.Problem)
	}
	c.p.timing.note(r.Stall - c.paused) // but for what was meant to be
	c.paused = 0
	return r
}

// kill ends the process as a power failure would.
func (c *child) kill() {
	c.p.Helper()
	if err := c.process.Kill(); err != nil {
		c.p.Fatal(err)
	}
}

// pause returns when the process stands still, as far as this system can tell:
// its threads don't stop all at once.
func (c *child) pause() {
	c.p.Helper()
	c.pausedAt = time.Now()
	if err := c.process.Pause(); err != nil {
		c.p.Fatal(err)
	}
	await(c.p.T, "the child to stop", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", c.process.Child.Pid))
		for _, name := range threads {
			if stat, err := os.ReadFile(name); err == nil && !bytes.Contains(stat, []byte(") T ")) {
				return false
			}
		}
		return true
	})
}

func (c *child) resume() {
	c.p.Helper()
	if err := c.process.Resume(); err != nil {
		c.p.Fatal(err)
	}
	c.paused += time.Since(c.pausedAt)
}

// beChild is the other process. It ends when nobody can give orders any more.
func beChild() {
	if err := obey(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

func obey(ctx context.Context) error {
	store, err := openAt(address{os.Getenv(childURL), os.Getenv(childCertificates)}, os.Getenv(childPrefix))
	if err != nil {
		return err
	}
	locks, err := asynclock.New(store)
	if err != nil {
		return err
	}
	s, timing := servant{locks: locks}, &timing{seen: time.Now()}
	go timing.watch(nil) // to the end of the process
	orders, reports := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		switch err := orders.Decode(&o); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		r := report{}
		if err := s.obey(ctx, o); err != nil {
			r.Problem = err.Error()
		}
		if l := s.lease; l != nil {
			r.Token = l.Token()
			r.Valid = l.Valid(0) // first of all: it asks the clock, not the watchdog
			r.Lost = errors.Is(l.Err(), asynclock.ErrLost)
			r.Ended = l.Context().Err() != nil
		}
		_, r.Stall = timing.take()
		if err := reports.Encode(r); err != nil {
			return err
		}
	}
}

// openAt opens a place's store.
func openAt(at address, corner string) (asynclock.Store, error) {
	if servers, found := strings.CutPrefix(at.url, zooKeeperScheme); found {
		return openZooKeeper(servers, corner, new(cable))
	}
	if !strings.HasPrefix(at.url, "redis") {
		d, _, err := openDatabase(at.url, new(net.Dialer).DialContext)
		if err != nil {
			return nil, err
		}
		return sqlstore.New(context.Background(), d, sqlstore.WithPrefix(corner))
	}
	option, err := at.option()
	if err != nil {
		return nil, err
	}
	return redisstore.Open(option, redisstore.WithPrefix(corner), atOnce)
}

// A servant is what a child has.
type servant struct {
	locks   *asynclock.Client
	pending <-chan asynclock.Result
	lease   *asynclock.Lease
}

func (s *servant) obey(ctx context.Context, o order) (err error) {
	switch o.Do {
	case "lock":
		s.lease, err = s.locks.Lock(ctx, o.Key, asynclock.WithTTL(o.TTL))
	case "queue":
		s.pending = s.locks.LockChan(ctx, o.Key, asynclock.WithTTL(o.TTL))
	case "claim":
		s.lease, err = (<-s.pending).Lease()
	case "unlock":
		if err = s.lease.Unlock(ctx); errors.Is(err, asynclock.ErrLost) {
			return nil // the report says so
		}
	case "bump":
		for range o.Rounds {
			if err := s.locks.WithLock(ctx, o.Key, func(context.Context, *asynclock.Lease) error {
				return bumpFile(o.File)
			}); err != nil {
				return err
			}
		}
	case "look":
	default:
		return fmt.Errorf("no such order: %q", o.Do)
	}
	return err
}

// bumpFile adds one to the number in a file.
func bumpFile(name string) error {
	n, err := readNumber(name)
	if err != nil {
		return err
	}
	return os.WriteFile(name, strconv.AppendInt(nil, n+1, 10), 0o600)
}

func readNumber(name string) (int64, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
}
