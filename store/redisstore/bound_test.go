// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A context bounds Lock and Unlock while the server is silent. At first very many callers come at
// once. Then there are 50 calls a second, while rueidis gives the connection up and dials another
// one.
func TestAContextBoundsCallsToAStoppedServer(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	locks, err := asynclock.New(sv.newStore(t, WithoutFailoverGrace()))
	if err != nil {
		t.Fatal(err)
	}
	held := make([]*asynclock.Lease, 20)
	for i := range held {
		if held[i], err = locks.Lock(t.Context(), fmt.Sprint("held ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := sv.own.Pause(); err != nil {
		t.Fatal(err)
	}

	atOnce, calls := boundedCalls{T: t}, boundedCalls{T: t}
	for i := range 3000 {
		atOnce.lock(locks, fmt.Sprint("key ", i))
	}
	atOnce.wantBounded()
	for i := range 50 * 6 {
		time.Sleep(time.Second / 50)
		calls.lock(locks, fmt.Sprint("key ", i))
		if i%15 == 0 {
			calls.unlock(held[i/15])
		}
	}
	calls.wantOnTime()
	if err := sv.own.Resume(); err != nil {
		t.Fatal(err)
	}
	l, err := locks.Lock(t.Context(), "afterwards")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Unlock(t.Context()), locks.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// boundedCalls are calls under contexts that end soon. Beside each of them a goroutine only waits for
// such a context, which shows how late a busy machine makes anybody.
type boundedCalls struct {
	*testing.T
	sync.WaitGroup

	answered              bool // some server may answer
	locks, unlocks, waits durations
}

const (
	callsEnd    = 100 * time.Millisecond // how long the context of a bounded call lasts
	unlockGrace = 50 * time.Millisecond  // for how much longer Unlock waits
)

// lock calls Lock, which returns when its context ends.
func (b *boundedCalls) lock(locks *asynclock.Client, key string) {
	b.bounded(&b.locks, func(ctx context.Context) error {
		lease, err := locks.Lock(ctx, key)
		if err == nil {
			lease.UnlockChan(context.WithoutCancel(ctx))
		}
		return err
	})
}

// unlock calls Unlock.
func (b *boundedCalls) unlock(lease *asynclock.Lease) { b.bounded(&b.unlocks, lease.Unlock) }

func (b *boundedCalls) bounded(took *durations, call func(context.Context) error) {
	b.measured(took, func(ctx context.Context) {
		err := call(ctx)
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, asynclock.ErrOutcomeUnknown), errors.Is(err, asynclock.ErrUnreachable):
		case b.answered && (err == nil || errors.Is(err, asynclock.ErrLost)):
		default:
			b.Errorf("got %v, want DeadlineExceeded, ErrOutcomeUnknown or ErrUnreachable", err)
		}
	})
	b.measured(&b.waits, func(ctx context.Context) { <-ctx.Done() })
}

func (b *boundedCalls) measured(took *durations, do func(context.Context)) {
	b.Go(func() {
		began := time.Now()
		ctx, cancel := context.WithTimeout(b.Context(), callsEnd)
		defer cancel()
		do(ctx)
		took.note(time.Since(began))
	})
}

// wantBounded waits for the calls. None takes much longer than the slowest of those who only wait.
func (b *boundedCalls) wantBounded() {
	b.Helper()
	b.Wait()
	_, most := b.waits.sorted()
	most = 100*time.Millisecond + 3*most
	for what, took := range map[string]*durations{"Lock": &b.locks, "Unlock": &b.unlocks} {
		if _, got := took.sorted(); got > most {
			b.Errorf("a call of %s took %v, want at most %v", what, got, most)
		}
	}
}

// wantOnTime is wantBounded for calls that do not come all at once. Half of them end within 50 ms after
// they should, if those who only wait are on time.
func (b *boundedCalls) wantOnTime() {
	b.Helper()
	b.wantBounded()
	usual, _ := b.waits.sorted()
	limit := 50*time.Millisecond + 3*(usual-callsEnd)
	if got, _ := b.locks.sorted(); got > callsEnd+limit {
		b.Errorf("half of the calls of Lock took %v or more, want at most %v", got, callsEnd+limit)
	}
	if got, _ := b.unlocks.sorted(); got > callsEnd+unlockGrace+limit {
		b.Errorf("half of the calls of Unlock took %v or more, want at most %v", got, callsEnd+unlockGrace+limit)
	}
}

// durations are how long each of some took.
type durations struct {
	mu  sync.Mutex
	all []time.Duration
}

func (d *durations) note(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, took)
}

// sorted returns the middle one and the slowest, or 0 if there are none.
func (d *durations) sorted() (middle, slowest time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 {
		return 0, 0
	}
	slices.Sort(d.all)
	return d.all[len(d.all)/2], d.all[len(d.all)-1]
}
