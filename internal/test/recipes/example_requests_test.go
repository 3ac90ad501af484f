// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
)

type orders struct {
	locks *asynclock.Client
	wait  time.Duration
}

// A request waits for a bounded time. The answer says whether somebody else has the key, or the lock
// service fails.
func Example_handler() {
	with(func(ctx context.Context, locks *asynclock.Client) error {
		o := &orders{locks, 2 * time.Second}
		fmt.Println("free:", o.answer(ctx))
		other, err := locks.Lock(ctx, "order:42")
		if err != nil {
			return err
		}
		o.wait = 0
		fmt.Println("held:", o.answer(ctx))
		if err := errors.Join(other.Unlock(ctx), locks.Close(ctx)); err != nil {
			return err
		}
		fmt.Println("closed:", o.answer(ctx))
		return nil
	})
	// Output:
	// free: 200
	// held: 409
	// closed: 503
}

func (o *orders) post(w http.ResponseWriter, r *http.Request) {
	err := o.locks.WithLock(r.Context(), "order:"+r.PathValue("id"), o.save, asynclock.WithWait(o.wait))
	switch {
	case errors.Is(err, asynclock.ErrLost), errors.Is(err, asynclock.ErrUnreachable),
		errors.Is(err, asynclock.ErrQueueFull), errors.Is(err, asynclock.ErrClosed):
		w.Header().Set("Retry-After", retryAfter(err))
		http.Error(w, "try again", http.StatusServiceUnavailable)
	case errors.Is(err, asynclock.ErrHeld), errors.Is(err, fence.ErrStale): // another had the key all the time, or has had it since
		http.Error(w, "the order is being changed", http.StatusConflict)
	case r.Context().Err() != nil: // nobody reads the answer
	case err != nil:
		http.Error(w, "failed", http.StatusInternalServerError)
	}
}

// retryAfter returns in how many seconds a request may be more successful.
func retryAfter(err error) string {
	var grace *asynclock.GraceError // Redis was started or promoted lately
	if errors.As(err, &grace) {
		return strconv.Itoa(int(grace.Remaining/time.Second) + 1)
	}
	return "1"
}

// answer is what a request for order 42 gets.
func (o *orders) answer(ctx context.Context) int {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders/42", http.NoBody)
	r.SetPathValue("id", "42")
	o.post(w, r)
	return w.Code
}

func (*orders) save(ctx context.Context, _ *asynclock.Lease) error { return ctx.Err() }
