// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

var reader = store.Share{Mode: store.Shared}

// endGraceNow ends the grace of a key's bucket at this moment, unlike endGrace.
func (sv *server) endGraceNow(t *testing.T, key string) {
	t.Helper()
	_, _, longest, older, turn := sv.epochOf(t, key)
	sv.setEpoch(t, key, sv.clock(t)/1000-1, longest, older, turn)
}

// Readers whom the new server knows go on, and admit nobody. A writer that it has forgotten may have
// had the key after them, and a later reader would have a smaller token.
func TestReadersFromBeforeAPromotionAdmitNobody(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		before := a.Want(read("key", "a"), store.Granted)
		promote()
		if got := b.Acquire(tryOf(read("key", "b"))); got.Status != store.Held {
			t.Errorf("a reader in the grace: got %+v, want Held", got)
		}
		b.Want(read("key", "b"), store.Waiting)
		if got := a.Want(read("key", "a"), store.Waiting); got.Grace == 0 {
			t.Errorf("the request of who holds it, once more in the grace: got %+v, want to wait for its end", got)
		}
		if err := a.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Share: reader}).Err; err != nil {
			t.Errorf("Renew of a reader that is known: got %v, want no error", err)
		}
		sv.endGraceNow(t, "key")
		b.Want(read("key", "b"), store.Waiting)
		b.Want(tryOf(read("key", "c")), store.Held)
		if again := a.Want(read("key", "a"), store.Granted); again.Fence != before.Fence {
			t.Errorf("the request of who holds it: got %+v, want token %d as before", again, before.Fence)
		}
		a.release(store.ReleaseRequest{Key: "key", Owner: "a"})
		first := b.Heard(store.EventGrant, "b").Grant
		if first.Fence <= before.Fence {
			t.Errorf("token of the next reader: got %d, want more than %d", first.Fence, before.Fence)
		}
		if got := a.Want(read("key", "d"), store.Granted); got.Fence != first.Fence {
			t.Errorf("token of one that joins it: got %d, want %d", got.Fence, first.Fence)
		}
	})
}

func TestSharesThatTheServerForgotEnd(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		some := permits("permits", "a", 2, 3)
		c.Want(read("readers", "a"), store.Granted)
		c.Want(some, store.Granted)
		c.Want(permits("permits", "known", 1, 3), store.Granted)
		sv.Do(t, "DEL", sv.redisKey("readers", 'l'))
		sv.Do(t, "ZREM", sv.redisKey("permits", 's'), "a")
		sv.Do(t, "HDEL", sv.redisKey("permits", 'h'), "a")
		promote()
		for key, share := range map[string]store.Share{"readers": reader, "permits": some.Share} {
			if err := c.renew(store.RenewRequest{Key: key, Owner: "a", TTL: long, Token: 1, Share: share}).Err; !errors.Is(err, store.ErrExpired) {
				t.Errorf("Renew of %q: got %v, want ErrExpired", key, err)
			}
		}
		if err := c.renew(store.RenewRequest{Key: "permits", Owner: "known", TTL: long, Share: some.Share}).Err; err != nil {
			t.Errorf("Renew of permits that are known: got %v, want no error", err)
		}
	})
}

// In the grace a share frees something, and nobody is granted that before its end.
func TestNoShareIsGrantedInTheGrace(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		for _, key := range []string{"released", "in parts", "withdrawn", "forced"} {
			a.Want(permits(key, "a", 2, 3), store.Granted)
			b.Want(permits(key, "b", 3, 3), store.Waiting)
			b.Want(permits(key, "c", 1, 3), store.Waiting)
		}
		promote()
		for _, r := range []store.ReleaseRequest{
			{Key: "released", Owner: "a"},
			{Key: "in parts", Owner: "a", Rest: &store.Share{Mode: store.Permits, Weight: 1, Limit: 3}},
			{Key: "withdrawn", Owner: "b"},
		} {
			a.release(r)
		}
		if held, err := a.session.Force(t.Context(), "forced", 0); err != nil || !held {
			t.Errorf("Force: got %v, %v, want true", held, err)
		}
		b.Acquire(permits("free", "d", 1, 3))
		b.heardNothing(sv)
		for _, key := range []string{"released", "withdrawn", "forced"} {
			q := permits(key, "c", 1, 3)
			b.Want(q, store.Waiting)
			sv.endGrace(t, key)
			b.Want(q, map[string]store.AcquireStatus{"released": store.Waiting, "forced": store.Waiting, "withdrawn": store.Granted}[key])
		}
	})
}

// A writer's holding that was forgotten is newer than readers whom the server still knows, or it is over.
func TestAWriterIsWrittenAnewOverOlderReaders(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		a.Want(read("key", "a"), store.Granted)
		last := a.Want(read("key", "a2"), store.Granted).Token
		promote()
		older := store.RenewRequest{Key: "key", Owner: "older", TTL: long, Token: last}
		if err := b.renew(older).Err; !errors.Is(err, store.ErrStolen) {
			t.Errorf("Renew of a writer from before the readers: got %v, want ErrStolen", err)
		}
		newer := store.RenewRequest{Key: "key", Owner: "newer", TTL: long, Token: last + 1, Description: "newer at home"}
		if err := b.renew(newer).Err; err != nil {
			t.Errorf("Renew of a writer from after the readers: got %v, want no error", err)
		}
		if info := a.Inspect("key"); info.Mode != store.Exclusive || info.Holder != "newer at home" || info.Token != last+1 {
			t.Errorf("Inspect: got %+v, want the writer with token %d", info, last+1)
		}
		if err := a.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Share: reader}).Err; !errors.Is(err, store.ErrStolen) {
			t.Errorf("Renew of a reader: got %v, want ErrStolen", err)
		}
		if sv.Number(t, "EXISTS", sv.redisKey("key", 's'), sv.redisKey("key", 'h')) != 0 {
			t.Error("members of the group: got some, want none")
		}
	})
}

// The epoch remembers the TTL of shares, as of other holdings.
func TestTheLongestTTLOfSharesIsRemembered(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		c := join(t, sv.store(t))
		c.Want(redistest.Request("key", "first"), store.Granted)
		c.release(store.ReleaseRequest{Key: "key", Owner: "first"})
		q := read("key", "a")
		q.TTL = 2 * long
		c.Want(q, store.Granted)
		if _, _, longest, _, _ := sv.epochOf(t, "key"); longest != millis(2*long) {
			t.Errorf("longest TTL after a grant: got %d, want %d", longest, millis(2*long))
		}
		if err := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: 3 * long, Share: reader}).Err; err != nil {
			t.Errorf("Renew: got %v, want no error", err)
		}
		if _, _, longest, _, _ := sv.epochOf(t, "key"); longest != millis(3*long) {
			t.Errorf("longest TTL after a renewal: got %d, want %d", longest, millis(3*long))
		}
	})
}

// FLUSHALL leaves no trace to those who hold nothing. So permits are granted once more, as a key would be. Those
// from before end with the next renewal, and never come back beside the others.
func TestPermitsEndAfterAFlush(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		some := permits("key", "a", 2, 3)
		a.Want(some, store.Granted)
		for _, kind := range []byte(lockKinds + shareKinds) {
			sv.Do(t, "DEL", sv.redisKey("key", kind))
		}
		sv.Do(t, "DEL", sv.epoch(bucketOf("key")))
		b.Want(permits("key", "b", 3, 3), store.Granted)
		renewal := store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: 1, Share: some.Share}
		if err := a.renew(renewal).Err; !errors.Is(err, store.ErrExpired) {
			t.Errorf("Renew of permits from before: got %v, want ErrExpired", err)
		}
		if info := b.Inspect("key"); info.Used != 3 || len(info.Holders) != 1 {
			t.Errorf("Inspect: got %d permits of %d holders, want 3 of one", info.Used, len(info.Holders))
		}
		a.Want(tryOf(permits("key", "c", 1, 3)), store.Held)
	})
}
