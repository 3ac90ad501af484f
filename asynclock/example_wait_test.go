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

// A request handler waits for at most 2 s. Its work is not bounded by the wait. It ends with the
// request, or with the lease.
func ExampleWithWait() {
	locks, err := asynclock.New(memstore.New(), asynclock.WithWait(2*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(context.Background())

	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := locks.WithLock(r.Context(), "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
			return saveOrder(ctx, 42, lease.Token())
		})
		switch {
		case errors.Is(err, context.DeadlineExceeded): // the error says who held the key
			http.Error(w, "busy", http.StatusServiceUnavailable)
		case err != nil: // also if the lease was lost
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})

	answer := httptest.NewRecorder()
	handler(answer, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/orders/42", http.NoBody))
	fmt.Println(answer.Code)
	// Output:
	// 200
}

// A job that runs on every host at the same minute, and is to run once an hour. It does not wait
// for another host, and keeps the key until shortly before the next run, however fast it was.
func ExampleWithWait_job() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	for range 2 { // two hosts
		err = locks.WithLock(ctx, "report", func(context.Context, *asynclock.Lease) error {
			fmt.Println("reports")
			return nil
		}, asynclock.WithWait(0), asynclock.WithMinHold(50*time.Minute))
		fmt.Println("another host has done it:", errors.Is(err, asynclock.ErrHeld))
	}
	// Output:
	// reports
	// another host has done it: false
	// another host has done it: true
}

// A cache that a thousand requests find empty is filled by one of them. The others do not queue for
// a lock that they no longer need once it is theirs. They look into the cache again.
func ExampleWithWait_cache() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close(ctx)

	cache := make(map[string]string)
	get := func(key string) (string, error) {
		for {
			if value, ok := cache[key]; ok {
				return value, nil
			}
			err := locks.WithLock(ctx, "fill:"+key, func(context.Context, *asynclock.Lease) error {
				if _, ok := cache[key]; !ok { // another may have filled it since we looked
					cache[key] = "expensive"
				}
				return nil
			}, asynclock.WithWait(0))
			switch {
			case errors.Is(err, asynclock.ErrHeld):
				time.Sleep(20 * time.Millisecond) // another is filling it
			case err != nil:
				return "", err
			}
		}
	}

	fmt.Println(get("page:1"))
	// Output:
	// expensive <nil>
}

// saveOrder stands for a write that carries the token of its lease.
func saveOrder(ctx context.Context, _ int, token int64) error {
	if token == 0 {
		return errors.New("no token")
	}
	return ctx.Err()
}
