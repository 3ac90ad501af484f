// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

// A test binary that finds these variables in its environment is a worker: it has one client
// and obeys orders.
const (
	workerURL  = "ASYNCLOCK_STORY_URL"
	workerArea = "ASYNCLOCK_STORY_AREA"
	// workerCertificates is the directory of an Encryption, if there is one.
	workerCertificates = "ASYNCLOCK_STORY_CERTIFICATES"
)

// An order is what a worker is to do. It answers each with one report.
type order struct {
	Do  string // lock, acquire, queue, claim, unlock, look or bump
	Key string

	Permits, Of int // to acquire

	TTL time.Duration // to lock and queue with

	File   string // to bump
	Rounds int
}

// A report is what a worker says of its lease.
type report struct {
	Token   int64
	Valid   bool
	Ended   bool          // its context has
	Lost    bool          // its error is ErrLost
	Stall   time.Duration // the longest since the last report
	Problem string
}

// A worker is another process with a client of its own.
type worker struct {
	env     *Env
	process *proc.Process
	orders  *json.Encoder
	reports *json.Decoder

	pausedAt time.Time
	paused   time.Duration // since the last report
}

// worker starts one. It ends with the story.
func (env *Env) worker() *worker {
	env.Helper()
	self, err := os.Executable()
	if err != nil {
		env.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), workerURL+"="+env.URL, workerArea+"="+env.Area)
	if env.encryption != nil {
		cmd.Env = append(cmd.Env, workerCertificates+"="+env.encryption.Dir)
	}
	cmd.Stderr = os.Stderr
	in, orders := pipe(env.T)
	reports, out := pipe(env.T)
	cmd.Stdin, cmd.Stdout = in, out
	process := launch(env.T, cmd)
	closeAll(in, out) // these ends are the worker's; what is left of the other ones ends with it
	return &worker{
		env: env, process: process,
		orders: json.NewEncoder(orders), reports: json.NewDecoder(reports),
	}
}

// closeAll closes files, some of which may be closed already.
func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(r, w) })
	return r, w
}

// launch starts a process that ends with the test, or with this process should
// that be killed.
func launch(t *testing.T, cmd *exec.Cmd) *proc.Process {
	t.Helper()
	process, err := proc.Start(cmd)
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
func (c *worker) does(o order) report {
	c.env.Helper()
	c.tell(o)
	return c.hears()
}

// tell gives an order, which a paused worker will find when it wakes up.
func (c *worker) tell(o order) {
	c.env.Helper()
	if err := c.orders.Encode(o); err != nil {
		c.env.Fatal(err)
	}
}

func (c *worker) hears() (r report) {
	c.env.Helper()
	if err := c.reports.Decode(&r); err != nil {
		c.env.Fatalf("the worker does not report: %v", err)
	}
	if r.Problem != "" {
		c.env.Fatalf("the worker reports: %s", r.Problem)
	}
	c.env.timing.note(r.Stall - c.paused) // except the pause that the test ordered
	c.paused = 0
	return r
}

// kill ends the process as a power failure would.
func (c *worker) kill() {
	c.env.Helper()
	if err := c.process.Kill(); err != nil {
		c.env.Fatal(err)
	}
}

// pause returns when the process stands still, as far as this system can tell:
// its threads don't stop all at once.
func (c *worker) pause() {
	c.env.Helper()
	c.pausedAt = time.Now()
	if err := c.process.Pause(); err != nil {
		c.env.Fatal(err)
	}
	kit.Eventually(c.env.T, "the worker to stop", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", c.process.Child.Pid))
		for _, name := range threads {
			if stat, err := os.ReadFile(name); err == nil && !bytes.Contains(stat, []byte(") T ")) {
				return false
			}
		}
		return true
	})
}

func (c *worker) resume() {
	c.env.Helper()
	if err := c.process.Resume(); err != nil {
		c.env.Fatal(err)
	}
	c.paused += time.Since(c.pausedAt)
}

// Main runs the tests of a package that runs stories. In a worker's process it does what
// the test orders instead; open then opens the store that an [Env]'s URL and Area name.
func Main(m *testing.M, open func(url, area string) (store.Store, error), leftover ...goleak.Option) {
	if os.Getenv(workerURL) == "" {
		kit.InParallel(16)
		goleak.VerifyTestMain(m, leftover...)
		return
	}
	if err := obey(context.Background(), open); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// obey ends when nobody can give orders any more.
func obey(ctx context.Context, open func(url, area string) (store.Store, error)) error {
	store, err := open(os.Getenv(workerURL), os.Getenv(workerArea))
	if err != nil {
		return err
	}
	locks, err := asynclock.New(store)
	if err != nil {
		return err
	}
	s, timing := client{locks: locks}, &timing{seen: time.Now()}
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

// A client is what a worker has.
type client struct {
	locks   *asynclock.Client
	pending <-chan asynclock.Result
	lease   *asynclock.Lease
}

func (s *client) obey(ctx context.Context, o order) (err error) {
	switch o.Do {
	case "lock":
		s.lease, err = again(ctx, func() (*asynclock.Lease, error) { return s.locks.Lock(ctx, o.Key, asynclock.WithTTL(o.TTL)) })
	case "acquire":
		s.lease, err = again(ctx, func() (*asynclock.Lease, error) { return s.acquire(ctx, o) })
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

func (s *client) acquire(ctx context.Context, o order) (*asynclock.Lease, error) {
	permits, err := s.locks.Semaphore(o.Key, o.Of, asynclock.WithTTL(o.TTL))
	if err != nil {
		return nil, err
	}
	return permits.Acquire(ctx, o.Permits)
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
