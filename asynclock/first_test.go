// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

// firsts says of each release of "key" whether it called itself the first.
func firsts(st *asynclocktest.Store) (first []bool) {
	for _, c := range st.Calls(asynclocktest.Release.On("key")) {
		first = append(first, c.Release.Clean)
	}
	return first
}

// A store may conclude from First that nobody else can have been granted the key.
func TestOnlyAReleaseThatNothingMayOvertakeIsTheFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(*asynclocktest.Store, *asynclock.Lease)
		want   []bool
	}{
		"plain": {func(*asynclocktest.Store, *asynclock.Lease) {}, []bool{true}},
		"repeated": {func(s *asynclocktest.Store, _ *asynclock.Lease) {
			s.Next(asynclocktest.Release.Any, asynclocktest.LoseReply)
		}, []bool{true, false}},
		"renewed": {func(*asynclocktest.Store, *asynclock.Lease) { time.Sleep(ttl) }, []bool{true}},
		"a renewal is under way": {func(s *asynclocktest.Store, _ *asynclock.Lease) {
			arrived := make(chan struct{})
			s.Next(asynclocktest.Renew.Any, func(ctx context.Context, carry func()) error {
				carry()
				close(arrived)
				<-ctx.Done()
				return ctx.Err()
			})
			<-arrived
		}, []bool{false}},
		"a renewal had no answer": {func(s *asynclocktest.Store, _ *asynclock.Lease) {
			s.Next(asynclocktest.Renew.Any, asynclocktest.LoseReply)
			time.Sleep(ttl)
		}, []bool{false}},
		"a renewal did not arrive": {func(s *asynclocktest.Store, _ *asynclock.Lease) {
			s.Next(asynclocktest.Renew.Any, asynclocktest.Refuse)
			time.Sleep(ttl)
		}, []bool{true}},
		"the holder's own renewal had no answer": {func(s *asynclocktest.Store, l *asynclock.Lease) {
			s.Next(asynclocktest.Renew.Any, asynclocktest.LoseReply)
			_ = l.Renew(context.Background(), ttl)
		}, []bool{false}},
	} {
		scene(t, name, func(w *world) {
			l := lock(w, w.client(), "key")
			tt.before(w.store, l)
			unlock(w, l)
			if got := firsts(w.store); !slices.Equal(got, tt.want) {
				w.Errorf("First of the releases: got %v, want %v", got, tt.want)
			}
		})
	}
}

// An owner that never held the key, or was granted it again meanwhile, has no first release.
func TestAWithdrawalIsNotTheFirstRelease(t *testing.T) {
	story(t, func(w *world) {
		lock(w, w.client(), "key")
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if _, err := w.client().Lock(ctx, "key"); err == nil {
			w.Fatal("got a key that is held")
		}
		w.wait()
		if got := firsts(w.store); !slices.Equal(got, []bool{false}) {
			w.Errorf("First of the releases: got %v, want [false]", got)
		}
	})
}

// A retained key's renewal comes late, to a server that had forgotten the holding and
// writes it anew, and its answer is the first thing that the client reads when it goes
// on after the trust deadline. Somebody else may have had the key.
func TestAReleaseThatComesTooLateIsNotTheFirst(t *testing.T) {
	story(t, func(w *world) {
		c, b := w.braked(asynclock.WithRetention(bound))
		l := lock(w, c, "key")
		deadline := l.Deadline()
		unlock(w, l)
		arrived, answered := make(chan struct{}), make(chan struct{})
		w.store.Next(asynclocktest.Renew.On("key"), func(_ context.Context, carry func()) error {
			close(arrived)
			<-answered
			carry()
			return nil
		})
		<-arrived
		goOn := b.pull(w)
		w.pass(time.Until(deadline) + time.Second)
		close(answered)
		w.wait()
		goOn()
		w.wait()
		if got := firsts(w.store); len(got) == 0 || slices.Contains(got, true) {
			w.Errorf("First of the releases after the deadline: got %v, want some, and all false", got)
		}
	})
}
