// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// reader is sqltest.Request for a reader.
func reader(key, owner string) store.AcquireRequest {
	q := sqltest.Request(key, owner)
	q.Share = store.Share{Mode: store.Shared}
	return q
}

// TestOneStepGrantsSixtyFour: so a release of a key that a thousand readers wait for keeps its row
// locked for a moment only. The next reader is asked to go on.
func TestOneStepGrantsSixtyFour(t *testing.T) {
	t.Parallel()
	const step, waiting = 64, 70
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		c := join(t, newTables(t, d))
		c.Hold(sqltest.Request("key", "writer"))
		for i := range waiting {
			c.Acquire(reader("key", strconv.Itoa(i)))
		}
		c.Release("key", "writer")
		info, err := c.Session.Inspect(t.Context(), "key")
		if err != nil || info.Waiters != waiting-step || info.Holder != "64 readers" {
			t.Fatalf("Inspect after a release for %d readers: got %+v, %v, want %d of them to hold the key", waiting, info, err, step)
		}
		if d.Kind == sqlconn.KindPostgres {
			if e := c.AwaitKind(store.EventWake); e.Owner != strconv.Itoa(step) {
				t.Errorf("EventWake: got %+v, want it for the first that waits", e)
			}
		}
		c.Hold(reader("key", strconv.Itoa(step)))
		if info, err := c.Session.Inspect(t.Context(), "key"); err != nil || info.Waiters != 0 {
			t.Errorf("Inspect after the request of the next one: got %+v, %v, want all to hold the key", info, err)
		}
	})
}

// TestMembersAreToldOfTheFirstWaiter: each one that asked for that, once.
func TestMembersAreToldOfTheFirstWaiter(t *testing.T) {
	t.Parallel()
	c := join(t, newTables(t, sqltest.OnPostgres(t)))
	q := reader("key", "a")
	q.NotifyQueued = true
	c.Hold(q)
	c.Hold(reader("key", "b"))
	q.Owner = "c"
	c.Hold(q)
	c.Acquire(sqltest.Request("key", "writer"))
	told := []string{c.AwaitKind(store.EventQueued).Owner, c.AwaitKind(store.EventQueued).Owner}
	if slices.Sort(told); !slices.Equal(told, []string{"a", "c"}) {
		t.Errorf("EventQueued: got it for %q, want it for those who asked", told)
	}
}

// TestBatchOfRenewalsComesToALockedMember: a renewal of who shares a key whose row is locked is
// sent again alone, as that of a holder.
func TestBatchOfRenewalsComesToALockedMember(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c := join(t, st)
		c.Hold(reader("key", "a"))
		c.Hold(sqltest.Request("other", "b"))
		sqltest.Tables{Suite: suite, Database: d, Prefix: st.settings.prefix, Store: st}.LockRow(t, "lock", "key")
		got := c.Session.Renew(t.Context(), []store.RenewRequest{
			{Key: "key", Owner: "a", TTL: sqltest.Long, Share: store.Share{Mode: store.Shared}},
			{Key: "other", Owner: "b", TTL: sqltest.Long},
		})
		if !errors.Is(got[0].Err, store.ErrUnreachable) || got[1].Err != nil {
			t.Errorf("Renew beside a locked row: got %v and %v, want ErrUnreachable, and no error", got[0].Err, got[1].Err)
		}
	})
}

// TestKeyIsListedUntilItsLastReaderEnds: whatever the order in which readers came.
func TestKeyIsListedUntilItsLastReaderEnds(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c := join(t, st)
		lasts, ends := reader("key", "lasts"), reader("key", "ends")
		lasts.TTL, ends.TTL = 2*sqltest.Long, sqltest.Long/2
		c.Hold(lasts)
		c.Hold(ends)
		c.Hold(reader("key", "leaves"))
		c.Release("key", "leaves")
		letPass(t, d, st.settings.prefix, time.Minute)
		listed := 0
		for info, err := range c.Session.List(t.Context(), "") {
			if listed++; err != nil || !info.Held || info.Holder != "lasts at home" || info.Mode != store.Shared {
				t.Errorf("List: got %+v, %v, want the reader that lasts", info, err)
			}
		}
		if listed != 1 {
			t.Errorf("List: got %d keys, want 1", listed)
		}
	})
}

// TestLateRenewalBringsNoMemberBack: although its row is still there, since nobody has asked for the
// key meanwhile. Nor does a renewal of what is held back.
func TestLateRenewalBringsNoMemberBack(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c := join(t, st)
		lasts := reader("key", "lasts")
		lasts.TTL = 9 * sqltest.Long
		c.Hold(lasts)
		c.Hold(reader("key", "late"))
		c.Hold(reader("key", "leaves"))
		held := store.ReleaseRequest{Key: "key", Owner: "leaves", HoldBack: 9 * sqltest.Long}
		if got := c.Session.Release(t.Context(), []store.ReleaseRequest{held})[0]; got.Err != nil || !got.WasHeld {
			t.Fatalf("Release: got %+v, want WasHeld", got)
		}
		letPass(t, d, st.settings.prefix, 2*time.Minute)
		for _, owner := range []string{"late", "leaves"} {
			q := store.RenewRequest{Key: "key", Owner: owner, TTL: sqltest.Long, Share: lasts.Share}
			if err := c.Session.Renew(t.Context(), []store.RenewRequest{q})[0].Err; !errors.Is(err, store.ErrExpired) {
				t.Errorf("Renew by %s: got %v, want ErrExpired", owner, err)
			}
		}
		if info, err := c.Session.Inspect(t.Context(), "key"); err != nil || len(info.Holders) != 2 {
			t.Errorf("Inspect: got %+v, %v, want who lasts and what is held back", info, err)
		}
	})
}

// TestWithdrawalServesThoseBehind: in the same step, so that they need not ask.
func TestWithdrawalServesThoseBehind(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		c := join(t, newTables(t, d))
		c.Hold(reader("key", "a"))
		c.Acquire(sqltest.Request("key", "writer"))
		c.Acquire(reader("key", "b"))
		if c.Release("key", "writer") {
			t.Error("Release of a waiter: got WasHeld true, want false")
		}
		if info, err := c.Session.Inspect(t.Context(), "key"); err != nil || info.Waiters != 0 || info.Holder != "2 readers" {
			t.Errorf("Inspect after a withdrawal: got %+v, %v, want 2 readers and nobody waiting", info, err)
		}
	})
}

// TestRestThatIsNoPartIsRefused: the owner keeps what it has.
func TestRestThatIsNoPartIsRefused(t *testing.T) {
	t.Parallel()
	whole, shared, permits := store.Share{}, store.Share{Mode: store.Shared}, store.Share{Mode: store.Permits, Weight: 1, Limit: 2}
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		c := join(t, newTables(t, d))
		for _, try := range []struct{ has, rest store.Share }{{whole, permits}, {shared, permits}, {permits, shared}} {
			q := sqltest.Request("key", "a")
			q.Share = try.has
			c.Hold(q)
			r := store.ReleaseRequest{Key: "key", Owner: "a", Rest: &try.rest}
			if got := c.Session.Release(t.Context(), []store.ReleaseRequest{r})[0]; !errors.Is(got.Err, store.ErrInvalidOption) {
				t.Errorf("Release of %+v with a rest of %+v: got %+v, want ErrInvalidOption", try.has, try.rest, got)
			}
			if info, err := c.Session.Inspect(t.Context(), "key"); err != nil || info.Mode != try.has.Mode {
				t.Errorf("Inspect: got %+v, %v, want it held as before", info, err)
			}
			if !c.Release("key", "a") {
				t.Error("Release: got WasHeld false, want true")
			}
		}
	})
}

// TestReadersTokensRiseOverWhatWasUsed: also where that is ahead of the clock.
func TestReadersTokensRiseOverWhatWasUsed(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		c := join(t, newTables(t, d))
		ahead := time.Now().Add(time.Hour).UnixMicro()
		c.Hold(sqltest.Request("key", "a"))
		q := store.ReleaseRequest{Key: "key", Owner: "a", Token: ahead, Rest: &store.Share{Mode: store.Shared}}
		if got := c.Session.Release(t.Context(), []store.ReleaseRequest{q})[0]; got.Grant.Fence <= ahead {
			t.Errorf("Release of a writer that reads on: got %+v, want a fence above %d", got, ahead)
		}
		ahead += time.Hour.Microseconds()
		c.Session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a", Token: ahead}})
		if got := c.Hold(sqltest.Request("key", "b")); got.Token <= ahead {
			t.Errorf("grant after a reader: got %+v, want a token above %d", got, ahead)
		}
	})
}

// TestTryOfAMemberFindsWhatItHas: although it locks no row where another has all of the key.
func TestTryOfAMemberFindsWhatItHas(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		c := join(t, newTables(t, d))
		q := reader("key", "a")
		q.Wait = false
		first := c.Hold(q)
		if again := c.Acquire(q); again.Status != store.Granted || again.Grant != first.Grant {
			t.Errorf("Acquire without Wait by a reader, repeated: got %+v, want %+v", again, first)
		}
	})
}

// TestNewcomerServesTheQueueOfReaders: who waits behind a dead waiter need not ask itself.
func TestNewcomerServesTheQueueOfReaders(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c := join(t, st)
		lasts, dies, lives := reader("key", "a"), sqltest.Request("key", "dies"), reader("key", "lives")
		lasts.TTL, dies.WaiterTTL, lives.WaiterTTL = 9*sqltest.Long, sqltest.Long/2, 9*sqltest.Long
		c.Hold(lasts)
		c.Acquire(dies)
		c.Acquire(lives)
		letPass(t, d, st.settings.prefix, time.Minute)
		q := sqltest.Request("key", "writer")
		q.Wait = false
		if got := c.Acquire(q); got.Status != store.Held || got.Waiters != 0 || got.Holder != "2 readers" {
			t.Errorf("Acquire without Wait: got %+v, want Held by 2 readers and nobody waiting", got)
		}
	})
}

// TestSweepForgetsMembers: with the key that they had.
func TestSweepForgetsMembers(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c, prefix := join(t, st), st.settings.prefix
		c.Hold(reader("key", "a"))
		c.Hold(reader("held", "b"))
		d.Run(t, "UPDATE "+prefix+"lock SET last_use = '2020-01-01'")
		d.Run(t, "UPDATE "+prefix+"lock SET held_until = '2020-01-01' WHERE "+keyColumn[d.Kind]+" = 'key'")
		d.RunRoutine(t, prefix+"sweep(100)")
		if got := d.Texts(t, "SELECT owner FROM "+prefix+"share"); !slices.Equal(got, []string{"b"}) {
			t.Errorf("members after the sweep: got %q, want that of the key that is held", got)
		}
	})
}
