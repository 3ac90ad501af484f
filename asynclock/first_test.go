// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A releaseLog is a store that notes which releases of "key" call themselves the first.
type releaseLog struct {
	store.Store

	first []bool
}

type loggedSession struct {
	store.Session

	log *releaseLog
}

func (r *releaseLog) Open(id string, events func(store.Event)) (store.Session, error) {
	s, err := r.Store.Open(id, events)
	return loggedSession{s, r}, err
}

func (s loggedSession) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	for _, q := range batch {
		if q.Key == "key" {
			s.log.first = append(s.log.first, q.Clean)
		}
	}
	return s.Session.Release(ctx, batch)
}

// A store may conclude from First that nobody else can have been granted the key.
func TestOnlyAReleaseThatNothingMayOvertakeIsTheFirst(t *testing.T) {
	t.Parallel()
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := &releaseLog{Store: memstore.New()}
				store := asynclocktest.Wrap(log)
				c, err := asynclock.New(store)
				if err != nil {
					t.Fatal(err)
				}
				defer abandon(c)
				l := lock(t, c, "key")
				tt.before(store, l)
				unlock(t, l)
				if len(log.first) != len(tt.want) || log.first[0] != tt.want[0] || log.first[len(log.first)-1] != tt.want[len(tt.want)-1] {
					t.Errorf("First of the releases: got %v, want %v", log.first, tt.want)
				}
			})
		})
	}
}

// An owner that never held the key, or was granted it again meanwhile, has no first release.
func TestAWithdrawalIsNotTheFirstRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &releaseLog{Store: memstore.New()}
		c, err := asynclock.New(asynclocktest.Wrap(log))
		if err != nil {
			t.Fatal(err)
		}
		other, err := asynclock.New(log.Store)
		if err != nil {
			t.Fatal(err)
		}
		defer abandon(c)
		defer abandon(other)
		held := lock(t, other, "key")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Lock(ctx, "key"); err == nil {
			t.Fatal("got a key that is held")
		}
		synctest.Wait()
		if len(log.first) != 1 || log.first[0] {
			t.Errorf("First of the releases: got %v, want [false]", log.first)
		}
		unlock(t, held)
	})
}

// A retained key's renewal comes late, to a server that had forgotten the holding and
// writes it anew, and its answer is the first thing that the client reads when it goes
// on after the trust deadline. Somebody else may have had the key.
func TestAReleaseThatComesTooLateIsNotTheFirst(t *testing.T) {
	story(t, func(w *world) {
		log := &releaseLog{Store: w.store}
		b := &brake{Store: log, stopped: make(chan struct{})}
		c, err := asynclock.New(b, asynclock.WithRetention(bound))
		if err != nil {
			w.Fatal(err)
		}
		b.client, b.number = c, w.clients
		w.clients++
		w.Cleanup(func() { abandon(c) })

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
		for _, first := range log.first {
			if first {
				w.Errorf("First of the releases after the deadline: got %v, want none", log.first)
			}
		}
		if len(log.first) == 0 {
			w.Error("got no release after the deadline")
		}
	})
}
