// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A request is what a caller may keep in its context.
type request struct{ body [1 << 16]byte }

type requestKey struct{}

// takeAndForget takes a share of the key under a context with a request, lets others join, and gives its own back.
func takeAndForget(t *testing.T, take acquire, join func()) weak.Pointer[request] {
	t.Helper()
	body := new(request)
	body.body[0] = 1
	l, err := take(context.WithValue(context.Background(), requestKey{}, body), "key")
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Context().Value(requestKey{}); got != body {
		t.Errorf("the value in the lease's context: got %v, want the caller's", got)
	}
	join()
	unlock(t, l)
	return weak.Make(body)
}

// Readers share a tenure, which lasts longer than the lease of the first of them.
func TestATenureKeepsNoValuesOfItsFirstCaller(t *testing.T) {
	c, err := asynclock.New(memstore.New(), asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer abandon(c)
	var second *asynclock.Lease
	value := takeAndForget(t, c.RLock, func() { second = rlock(t, c, "key") })
	for end := time.Now().Add(20 * time.Second); value.Value() != nil; runtime.Gosched() {
		if runtime.GC(); time.Now().After(end) {
			t.Fatal("the values of the first caller's context are kept although its lease has ended")
		}
	}
	wantValid(t, second)
	if got := second.Context().Value(requestKey{}); got != nil {
		t.Errorf("the value in another lease's context: got %v, want none", got)
	}
	unlock(t, second)
}
