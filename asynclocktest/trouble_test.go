// SPDX-License-Identifier: Apache-2.0

package asynclocktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

const ttl = 15 * time.Second // the default

// clients makes so many, on one store.
func clients(t *testing.T, n int) (*asynclocktest.Store, []*asynclock.Client) {
	t.Helper()
	store := asynclocktest.New()
	made := make([]*asynclock.Client, n)
	for i := range made {
		c, err := asynclock.New(store)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(context.Background()); err != nil {
				t.Errorf("close of client %d: %v", i, err)
			}
		})
		made[i] = c
	}
	return store, made
}

func lock(t *testing.T, c *asynclock.Client, key string) *asynclock.Lease {
	t.Helper()
	l, err := c.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func unlock(t *testing.T, l *asynclock.Lease) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestClientThatIsCutOffLosesItsLeaseAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, c := clients(t, 2)
		l, other := lock(t, c[0], "key"), lock(t, c[1], "other")
		mend := store.Cut(0)
		waiting := make(chan *asynclock.Lease)
		go func() { waiting <- lock(t, c[1], "key") }()
		<-l.Done()
		if err := l.Err(); !errors.Is(err, asynclock.ErrNotRenewed) {
			t.Errorf("the lease ended with %v, want that it was not renewed", err)
		}
		if _, err := c[0].TryLock(t.Context(), "free"); !errors.Is(err, asynclock.ErrUnreachable) {
			t.Errorf("TryLock meanwhile: got error %v, want that the store is unreachable", err)
		}
		unlock(t, <-waiting)
		if !other.Valid(0) {
			t.Error("a lease of the other client was lost")
		}
		unlock(t, other)
		mend()
		mend()
		unlock(t, lock(t, c[0], "key"))
	})
}

func TestPauseHoldsBackRequestsAndEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, c := clients(t, 2)
		held := lock(t, c[1], "key")
		asked := make(chan *asynclock.Lease)
		go func() { asked <- lock(t, c[0], "key") }()
		synctest.Wait()
		resume := store.Pause(0)
		unlock(t, held)
		time.Sleep(2 * time.Second) // longer than a call may take, not than a grant lasts
		synctest.Wait()
		select {
		case <-asked:
			t.Fatal("the client has the key, and was to stand still")
		default:
		}
		before := time.Now()
		resume()
		unlock(t, <-asked)
		if took := time.Since(before); took > 0 {
			t.Errorf("the grant was read %v after the pause, want at once", took)
		}
		if got := len(store.Calls(asynclocktest.Acquire.From(0))); got < 2 {
			t.Errorf("the client made %d requests, want a heartbeat among them that was held back", got)
		}
	})
}

func TestExpireEndsAHoldingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, c := clients(t, 2)
		expire := func(want bool) {
			t.Helper()
			if held, err := store.Expire(t.Context(), "key"); held != want || err != nil {
				t.Errorf("got held %v, error %v; want %v and no error", held, err, want)
			}
		}
		expire(false)
		first := lock(t, c[0], "key")
		future := c[1].LockChan(t.Context(), "key")
		before := time.Now()
		expire(true)
		second, err := (<-future).Lease()
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(before); took > 0 {
			t.Errorf("the next one had the key %v later, want at once", took)
		}
		if second.Token() <= first.Token() {
			t.Errorf("got token %d after %d, want a larger one", second.Token(), first.Token())
		}
		if !first.Valid(0) {
			t.Error("the holder knows of it, and was not told")
		}
		<-first.Done() // when the next renewal is due
		if took := time.Since(before); took > ttl/2 {
			t.Errorf("the holder learned of it %v later, want at most %v", took, ttl/2)
		}
		expire(true)
		if err := second.Unlock(t.Context()); !errors.Is(err, asynclock.ErrLost) {
			t.Errorf("unlock: got error %v, want %v", err, asynclock.ErrLost)
		}
		expire(false)
	})
}
