// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A releaseLog is a store that notes which releases call themselves the first.
type releaseLog struct {
	asynclock.Store

	first []bool
}

type loggedSession struct {
	asynclock.Session

	log *releaseLog
}

func (r *releaseLog) Join(id string, events func(asynclock.Event)) (asynclock.Session, error) {
	s, err := r.Store.Join(id, events)
	return loggedSession{s, r}, err
}

func (s loggedSession) Release(ctx context.Context, batch []asynclock.ReleaseRequest) []asynclock.ReleaseReply {
	for _, q := range batch {
		s.log.first = append(s.log.first, q.First)
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
			s.Next(asynclocktest.Renew.Any, asynclocktest.Slow(0, time.Second))
			time.Sleep(ttl/3 + 500*time.Millisecond)
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

// Who never held the key, or was granted it again meanwhile, has no first release.
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
