// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The end of a call's context has its time and its error, whether the store polls it, waits for it, or
// waits for a context made from it.
func TestBoundedEndsInTime(t *testing.T) {
	t.Parallel()
	const (
		timeout = time.Second
		grace   = 50 * time.Millisecond
		tick    = time.Millisecond
	)
	lasting := func(d time.Duration) func() (context.Context, context.CancelFunc) {
		return func() (context.Context, context.CancelFunc) { return context.WithTimeout(context.Background(), d) }
	}
	for _, c := range []struct {
		name   string
		parent func() (context.Context, context.CancelFunc)
		grace  time.Duration
		want   time.Duration
	}{
		{"with its limit", lasting(time.Hour), 0, timeout},
		{"with its limit, in spite of a grace", lasting(time.Hour), grace, timeout},
		{"with its limit, within the grace", lasting(timeout - grace/2), grace, timeout},
		{"with its parent", lasting(300 * time.Millisecond), 0, 300 * time.Millisecond},
		{"a grace after its parent", lasting(300 * time.Millisecond), grace, 300*time.Millisecond + grace},
		{"a grace after its call, if its parent has ended long before", lasting(-time.Minute), grace, grace},
		{"a grace after its call, if its parent was cancelled before", func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx, cancel
		}, grace, grace},
	} {
		for name, wait := range map[string]func(ctx context.Context){
			"waited for": func(ctx context.Context) { <-ctx.Done() },
			"polled": func(ctx context.Context) {
				for ctx.Err() == nil {
					time.Sleep(tick)
				}
			},
			"derived": func(ctx context.Context) {
				child, cancel := context.WithCancel(ctx)
				defer cancel()
				<-child.Done()
			},
		} {
			t.Run(c.name+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, cancel := c.parent()
					defer cancel()
					var r limiter
					defer r.close()
					began := time.Now()
					ctx := r.bound(context.WithValue(parent, innermost{}, "value"), timeout, c.grace)
					defer ctx.leave()
					if at, ok := ctx.Deadline(); !ok || at.Sub(began) != c.want {
						t.Errorf("the deadline is after %v, want %v", at.Sub(began), c.want)
					}
					wait(ctx)
					if took := time.Since(began); took < c.want || took > c.want+2*tick {
						t.Errorf("ended after %v, want %v", took, c.want)
					}
					for range 2 { // before and after Done was called
						if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("got error %v, want DeadlineExceeded", err)
						}
						if got := ctx.Value(innermost{}); got != "value" {
							t.Errorf("got value %v, want the parent's", got)
						}
						<-ctx.Done()
					}
				})
			})
		}
	}
}

// A call that has returned leaves nothing behind, and its context has ended for whoever kept it.
func TestBoundedIsLeft(t *testing.T) {
	t.Parallel()
	for _, grace := range []time.Duration{0, time.Minute} {
		for name, asked := range map[string]bool{"its channel was asked for": true, "nobody asked": false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					parent, cancel := context.WithCancel(context.Background())
					defer cancel()
					var r limiter
					ctx := r.bound(parent, time.Hour, grace).(*bounded)
					if asked {
						ctx.Done()
					}
					ctx.leave()
					if err := ctx.Err(); !errors.Is(err, context.Canceled) {
						t.Errorf("got error %v, want Canceled", err)
					}
					<-ctx.Done()
					if n := len(ctx.limit.watched); n != 0 {
						t.Errorf("the limit still knows %d calls", n)
					}
					r.close()
					cancel()
					synctest.Wait()
					if at, _ := ctx.limit.Deadline(); !time.Now().Before(at) || ctx.limit.Err() == nil {
						t.Error("the limit has a timer after its last user has left")
					}
				})
			})
		}
	}
}
