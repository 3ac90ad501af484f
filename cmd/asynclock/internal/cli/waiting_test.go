// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// TestTryAfterGrace: a server that grants nothing yet is waited for, within bounds, and what it answers then counts.
func TestTryAfterGrace(t *testing.T) {
	t.Parallel()
	grace := func(left time.Duration) error { return &asynclock.Error{Err: &asynclock.GraceError{Remaining: left}} }
	for name, tt := range map[string]struct {
		answers []error // to one try after the other
		want    error   // of the last
		waits   time.Duration
	}{
		"no grace":         {[]error{nil}, nil, 0},
		"held":             {[]error{asynclock.ErrHeld}, asynclock.ErrHeld, 0},
		"free afterwards":  {[]error{grace(15 * time.Second), nil}, nil, 15 * time.Second},
		"held afterwards":  {[]error{grace(15 * time.Second), asynclock.ErrHeld}, asynclock.ErrHeld, 15 * time.Second},
		"another restart":  {[]error{grace(9 * time.Minute), grace(30 * time.Second), nil}, nil, 9*time.Minute + 30*time.Second},
		"over by now":      {[]error{grace(0), nil}, nil, 200 * time.Millisecond},
		"too long":         {[]error{grace(time.Hour)}, asynclock.ErrGrace, 0},
		"too many at last": {[]error{grace(9 * time.Minute), grace(2 * time.Minute)}, asynclock.ErrGrace, 9 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, tries, said := time.Now(), 0, 0
				_, err := tryAfterGrace(t.Context(), func(context.Context, string, ...asynclock.LockOption) (*asynclock.Lease, error) {
					tries++
					return nil, tt.answers[tries-1]
				}, "k", func(string, ...any) { said++ })
				if !errors.Is(err, tt.want) || tries != len(tt.answers) || time.Since(begin) != tt.waits {
					t.Errorf("got %v after %d tries and %v, want %v after %d and %v", err, tries, time.Since(begin), tt.want, len(tt.answers), tt.waits)
				}
				if said != min(tries-1, 1) {
					t.Errorf("said %d times why it waits, want once if it waits", said)
				}
			})
		})
	}
}

// TestTryAfterGraceEndsWithItsContext, as a signal ends it.
func TestTryAfterGraceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := tryAfterGrace(ctx, func(context.Context, string, ...asynclock.LockOption) (*asynclock.Lease, error) {
			return nil, &asynclock.GraceError{Remaining: time.Minute}
		}, "k", func(string, ...any) {})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's end", err)
		}
	})
}

// TestWaitReport: nothing for a second, then each reason once, until the wait is over.
func TestWaitReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		held := func(token int64) asynclock.Info {
			return asynclock.Info{Held: true, Holder: "host\x1b", Token: token, Waiters: 1}
		}
		answers := []struct {
			info asynclock.Info
			err  error
			told error // of the wait
		}{
			{info: held(1)},
			{info: held(1)},
			{info: held(2)},
			{err: asynclock.ErrUnreachable},
			{err: asynclock.ErrOutcomeUnknown},
			{err: errors.New("another")},
			{},
			{info: asynclock.Info{Waiters: 2}, told: &asynclock.HeldError{}}, // its holder's TTL has just ended
			{info: asynclock.Info{Waiters: 2}, told: &asynclock.Error{Err: &asynclock.GraceError{Remaining: 9 * time.Second}}},
			{info: held(2)},
		}
		var said []string
		n := 0
		ctx, cancel := context.WithCancel(t.Context())
		w := waitReport{
			key: "k",
			inspect: func(ctx context.Context, _ string) (asynclock.Info, error) {
				if n == len(answers) { // it hangs
					<-ctx.Done()
					return asynclock.Info{}, ctx.Err()
				}
				n++
				return answers[n-1].info, answers[n-1].err
			},
			told: func(context.Context) error { return answers[n-1].told },
			say: func(format string, args ...any) {
				said = append(said, fmt.Sprintf("%v ", time.Since(start))+fmt.Sprintf(format, args...))
			},
		}
		done := make(chan struct{})
		go func() { // ends with ctx; waited for below
			defer close(done)
			w.run(ctx)
		}()
		time.Sleep(111 * time.Second) // its last look has begun a second before
		cancel()
		<-done
		want := []string{
			`1s waiting for "k": held by "host\x1b" (token 1)`,
			`21s waiting for "k": held by "host\x1b" (token 2)`,
			`31s waiting for "k": the server can't be reached, or does not answer`,
			`1m21s waiting for "k": nobody holds it, but the server was started or promoted lately, and grants nothing for 9s yet`,
			`1m31s waiting for "k": held by "host\x1b" (token 2)`,
			`1m43s waiting for "k": the server can't be reached, or does not answer`,
		}
		if !slices.Equal(said, want) {
			t.Errorf("got\n%q, want\n%q", said, want)
		}
	})
}

// TestWaitReportEndsWithTheWait: what is found after that is not said.
func TestWaitReportEndsWithTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), silence)
		defer cancel()
		w := waitReport{
			inspect: func(ctx context.Context, _ string) (asynclock.Info, error) {
				<-ctx.Done()
				return asynclock.Info{}, ctx.Err()
			},
			say: func(format string, args ...any) { t.Errorf("got "+format+", want nothing", args...) },
		}
		w.run(ctx)
	})
}

// TestAskingWhatTheWaitWasToldTakesNothing: beside a wait it is refused with the holder. If the wait
// has ended, the key is free afterwards, whatever minimum the command asked for.
func TestAskingWhatTheWaitWasToldTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks, err := asynclock.New(memstore.New(), asynclock.WithMinHold(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := locks.Close(ctx); err != nil {
				t.Error(err)
			}
		}()
		c := &connection{Client: locks}
		if err := c.told(t.Context(), "k"); err != nil {
			t.Errorf("without a wait: got %v, want the key", err)
		}
		lease, err := locks.TryLock(t.Context(), "k", asynclock.WithMinHold(0))
		if err != nil {
			t.Fatalf("TryLock afterwards: got %v, want the key", err)
		}
		if err := c.told(t.Context(), "k"); !errors.Is(err, asynclock.ErrHeld) {
			t.Errorf("of a key that is ours: got %v, want ErrHeld", err)
		}
		if err := lease.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
