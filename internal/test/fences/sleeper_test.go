// SPDX-License-Identifier: Apache-2.0

package fences

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// A resource has one value, and a fence that its writes go through.
type resource struct {
	write func(ctx context.Context, h fence.Holder, value string) error
	read  func(ctx context.Context) (string, error)
	close func()
}

// A kind of resource is opened by its place, in several processes.
type kind struct {
	prepare func(t *testing.T) (place string)
	open    func(ctx context.Context, place string) (resource, error)
}

// kinds are all that there are, by name. The files that have them add them.
var kinds = map[string]kind{}

const (
	// sleeperVariable makes a process of this binary the sleeper: it has a job as JSON.
	sleeperVariable = "ASYNCLOCK_FENCES_SLEEPER"
	// ttl is that of the lease that is lost.
	ttl = 500 * time.Millisecond
	// patience is how long something may take that takes no time.
	patience = 30 * time.Second
)

// A job is where the lock and the resources are.
type job struct {
	Redis, Prefix, Key string
	Places             map[string]string // by kind
}

// An order is a write to one resource. The first order is to lock.
type order struct{ Kind, Value string }

// A report is what became of an order.
type report struct {
	Token   int64
	Stale   *fence.StaleError
	Problem string // any other error
}

func (j job) client() (*asynclock.Client, error) {
	store, err := redisstore.OpenURL(j.Redis, redisstore.WithPrefix(j.Prefix), redisstore.WithoutFailoverGrace(), redisstore.WithoutLogger())
	if err != nil {
		return nil, err
	}
	return asynclock.New(store, asynclock.WithOwnedStore(), asynclock.WithTTL(ttl), asynclock.WithoutLogger())
}

// sleep is the whole life of the process that will be stopped. It ends with its orders.
func sleep(ctx context.Context, in io.Reader, out io.Writer) error {
	var j job
	if err := json.Unmarshal([]byte(os.Getenv(sleeperVariable)), &j); err != nil {
		return err
	}
	locks, err := j.client()
	if err != nil {
		return err
	}
	resources := make(map[string]resource)
	for name, place := range j.Places {
		if resources[name], err = kinds[name].open(ctx, place); err != nil {
			return err
		}
	}
	orders, reports := json.NewDecoder(in), json.NewEncoder(out)
	lease, err := locks.Lock(ctx, j.Key)
	if err != nil {
		return err
	}
	for {
		if err := reports.Encode(reportOn(lease, err)); err != nil {
			return err
		}
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		err = resources[o.Kind].write(ctx, lease, o.Value) // whatever has become of the lease
	}
}

func reportOn(lease *asynclock.Lease, err error) report {
	r := report{Token: lease.Token()}
	if err != nil && !errors.As(err, &r.Stale) {
		r.Problem = err.Error()
	}
	return r
}

// A sleeper is that process, seen from here.
type sleeper struct {
	*proc.Process
	t       *testing.T
	orders  *json.Encoder
	reports *json.Decoder
	out     *os.File // that the reports come from
}

func startSleeper(t *testing.T, j job) *sleeper {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), sleeperVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, orders := pipe(t)
	reports, out := pipe(t)
	cmd.Stdin, cmd.Stdout = in, out
	p, err := proc.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	_, _ = in.Close(), out.Close() // they are the child's
	return &sleeper{p, t, json.NewEncoder(orders), json.NewDecoder(reports), reports}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

func (s *sleeper) tell(o order) {
	s.t.Helper()
	if err := s.orders.Encode(o); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sleeper) hear() (r report) {
	s.t.Helper()
	if err := s.out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	if err := s.reports.Decode(&r); err != nil {
		s.t.Fatal("the sleeper does not report: ", err)
	}
	return r
}

// TestASleeperIsRefused is what fences are for. The holder in another process has written to each
// resource, and is stopped for longer than its TTL. The next holder writes to each. Then the first
// one goes on, and its write is refused.
func TestASleeperIsRefused(t *testing.T) {
	t.Parallel()
	if !proc.CanPause {
		kit.Skip(t, "this system can't stop a process")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	j := job{Redis: kit.Require(t, "ASYNCLOCK_REDIS_URL"), Prefix: "fences-" + uuid.NewString(), Key: "order:42", Places: make(map[string]string)}
	resources := make(map[string]resource)
	for name, k := range kinds {
		j.Places[name] = k.prepare(t)
		r, err := k.open(ctx, j.Places[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(r.close)
		resources[name] = r
	}
	locks, err := j.client()
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close(ctx)

	first := startSleeper(t, j)
	old := first.hear()
	for name := range kinds {
		first.tell(order{name, "first"})
		if got := first.hear(); got.Stale != nil || got.Problem != "" {
			t.Fatalf("%s: the first holder's write: got %+v, want no error", name, got)
		}
	}
	pending := locks.LockChan(ctx, j.Key)
	if err := first.Pause(); err != nil {
		t.Fatal(err)
	}
	next, err := (<-pending).Lease()
	if err != nil {
		t.Fatal(err)
	}
	defer next.Unlock(ctx)
	for name, r := range resources {
		if err := r.write(ctx, next, "next"); err != nil {
			t.Errorf("%s: the next holder's write: got %v, want no error", name, err)
		}
	}
	if err := first.Resume(); err != nil {
		t.Fatal(err)
	}
	for name, r := range resources {
		first.tell(order{name, "late"})
		got, want := first.hear(), fence.StaleError{Key: j.Key, Token: old.Token, Newest: next.Token()}
		if got.Stale != nil {
			want.Resource = got.Stale.Resource // each fence has its own
		}
		if got.Stale == nil || *got.Stale != want {
			t.Errorf("%s: the sleeper's write: got %+v, want %+v", name, got, want)
		}
		if value, err := r.read(ctx); err != nil || value != "next" {
			t.Errorf("%s: got the value %q, %v, want that of the next holder", name, value, err)
		}
	}
}
