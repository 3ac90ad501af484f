// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A context bounds Lock while the server is silent, and Unlock is bounded by the second that it may
// take in any case. At first very many callers come at once. Then there are 50 calls a second, while
// rueidis gives the connection up and dials another one. Other goroutines only wait for such a
// context. They measure what a busy machine adds.
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

	const patience = 100 * time.Millisecond
	var calls sync.WaitGroup
	var late, lateAnyway lateness
	bounded := func(what string, most time.Duration, call func(context.Context) error) {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			began := time.Now()
			err := call(ctx)
			late.note(time.Since(began) - most)
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, asynclock.ErrOutcomeUnknown) && !errors.Is(err, asynclock.ErrUnreachable) {
				t.Errorf("%s: got %v, want DeadlineExceeded, ErrOutcomeUnknown or ErrUnreachable", what, err)
			}
		})
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			began := time.Now()
			<-ctx.Done()
			lateAnyway.note(time.Since(began) - patience)
		})
	}
	lock := func(i int) {
		bounded("Lock", patience, func(ctx context.Context) error {
			_, err := locks.Lock(ctx, fmt.Sprint("key ", i))
			return err
		})
	}
	for i := range 3000 {
		lock(i)
	}
	for i := range 50 * 6 {
		time.Sleep(time.Second / 50)
		lock(i)
		if i%15 == 0 {
			bounded("Unlock", time.Second, held[i/15].Unlock)
		}
	}
	calls.Wait()
	if err := sv.own.Resume(); err != nil {
		t.Fatal(err)
	}
	if got, most := late.most, 250*time.Millisecond+3*lateAnyway.most; got > most {
		t.Errorf("a call ended %v too late, want at most %v", got, most)
	}
	l, err := locks.Lock(t.Context(), "afterwards")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Unlock(t.Context()), locks.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// A lateness is the most that anybody was late.
type lateness struct {
	mu   sync.Mutex
	most time.Duration
}

func (l *lateness) note(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = max(l.most, d)
}
