// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A handler waits for at most 2 s. Its work ends with the request or with the lease, but not
// with the wait: WithLock(wait, …) would end the work after 2 s too.
func ExampleLease_Context() {
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())

	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wait, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		lease, err := locks.Lock(wait, "order:42")
		cancel()
		if err != nil { // usually context.DeadlineExceeded: others hold the key, or the store is slow
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		work, stop := context.WithCancelCause(r.Context())
		defer context.AfterFunc(lease.Context(), func() { stop(lease.Err()) })()

		err = saveOrder(work, 42, lease.Token())
		err = errors.Join(err, lease.Unlock(r.Context())) // an error if the lease was lost
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})

	answer := httptest.NewRecorder()
	handler(answer, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/orders/42", http.NoBody))
	fmt.Println(answer.Code)
	// Output:
	// 200
}

// saveOrder stands for a write that carries the token of its lease.
func saveOrder(ctx context.Context, _ int, token int64) error {
	if token == 0 {
		return errors.New("no token")
	}
	return ctx.Err()
}
