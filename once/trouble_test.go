// SPDX-License-Identifier: Apache-2.0

package once_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/once"
)

// A process dies when its job has just begun. Two thirds of the interval are left for another.
func TestTheJobOfAProcessThatDiedIsRepeatedInItsInterval(t *testing.T) {
	for name, tt := range map[string]struct {
		every   time.Duration
		client  []asynclock.ClientOption
		options []once.Option
		free    time.Duration // after this the job is repeated
	}{
		"the shortest interval": {once.MinInterval, nil, nil, 333 * time.Millisecond},
		"the TTL's length":      {asynclock.DefaultTTL, nil, nil, 5 * time.Second},
		"a long interval":       {time.Hour, nil, nil, asynclock.DefaultTTL},
		"a client's long TTL":   {time.Minute, []asynclock.ClientOption{asynclock.WithTTL(time.Hour)}, nil, 20 * time.Second},
		"a client's short TTL":  {time.Minute, []asynclock.ClientOption{asynclock.WithTTL(2 * time.Second)}, nil, 2 * time.Second},
		"a TTL of the job": {
			every: time.Minute, options: []once.Option{once.WithLockOptions(asynclock.WithTTL(50 * time.Second))}, free: 50 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				dead, c := w.client(tt.client...), w.client(tt.client...)
				do := func(c *asynclock.Client, job func(context.Context, once.Run) error) once.Outcome {
					o, _ := once.Do(w.Context(), c, key, tt.every, job, tt.options...)
					return o
				}
				died := make(chan struct{})
				go func() {
					defer close(died)
					do(dead, func(ctx context.Context, _ once.Run) error {
						<-ctx.Done()
						return context.Cause(ctx)
					})
				}()
				w.pass(0)
				w.store.Every(asynclocktest.Match(nil).From(0), asynclocktest.Hang)
				w.pass(tt.free - 10*time.Millisecond)
				if o := do(c, w.never); !o.Running {
					w.Errorf("before the TTL's end: got %+v, want it running", o)
				}
				w.pass(20 * time.Millisecond)
				if o := do(c, fn); !o.Ran || o.Last.Attempt != 2 {
					w.Errorf("after the TTL's end: got %+v, want attempt 2", o)
				}
				<-died
			})
		})
	}
}

// grantsNothingFor has the store grant nothing for a while, as Redis after a start or a failover.
func (w *world) grantsNothingFor(d time.Duration) {
	end := time.Now().Add(d)
	w.store.Every(asynclocktest.Acquire.Any, func(_ context.Context, carry func()) error {
		if left := time.Until(end); left > 0 {
			return &asynclock.GraceError{Remaining: left}
		}
		carry()
		return nil
	})
}

// Timers that fire once a day would leave the day without a run.
func TestDoWaitsForAStoreThatGrantsNothingYet(t *testing.T) {
	story(t, func(w *world) {
		w.grantsNothingFor(every / 2)
		begin := time.Now()
		w.wantRan(w.client())
		if took := time.Since(begin); took < every/2 || took > every/2+time.Second {
			w.Errorf("Do took %v, want the grace of %v", took, every/2)
		}
	})
}

func TestDoDoesNotWaitPastItsInterval(t *testing.T) {
	story(t, func(w *world) {
		w.grantsNothingFor(2 * every)
		begin := time.Now()
		_, err := once.Do(w.Context(), w.client(), key, every, w.never)
		if w.wantError(err, asynclock.ErrGrace); time.Since(begin) > time.Second {
			w.Errorf("Do took %v, want it to end at once", time.Since(begin))
		}
	})
}

func TestDoWaitsAsLongAsItsContextLasts(t *testing.T) {
	story(t, func(w *world) {
		w.grantsNothingFor(every / 2)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := once.Do(ctx, w.client(), key, every, w.never)
		if w.wantError(err, asynclock.ErrGrace); time.Since(begin) > 2*time.Second {
			w.Errorf("Do took %v, want a second", time.Since(begin))
		}
	})
}

// A job that is done is no reason to accept options that fail when it is due.
func TestOptionsOfLocksAreCheckedAtOnce(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.wantRan(c)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		for name, option := range map[string]asynclock.LockOption{"nil": nil, "a TTL of 0": asynclock.WithTTL(0)} {
			_, err := once.Do(w.Context(), c, key, every, w.never, once.WithLockOptions(option))
			everyErr := once.Every(ctx, c, key, every, w.never, once.WithLockOptions(option))
			if !errors.Is(err, asynclock.ErrInvalidOption) || !errors.Is(everyErr, asynclock.ErrInvalidOption) {
				w.Errorf("%s: got %v and %v, want ErrInvalidOption", name, err, everyErr)
			}
		}
	})
}
