// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

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
		a.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Share: reader}, nil) // a reader that is known
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
		c.wantRenewal(store.RenewRequest{Key: "permits", Owner: "known", TTL: long, Share: some.Share}, nil) // permits that are known
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
		a.force("forced")
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
		b.wantRenewal(older, store.ErrStolen) // a writer from before the readers
		newer := store.RenewRequest{Key: "key", Owner: "newer", TTL: long, Token: last + 1, Description: "newer at home"}
		b.wantRenewal(newer, nil) // a writer from after the readers
		if info := a.Inspect("key"); info.Mode != store.Exclusive || info.Holder != "newer at home" || info.Token != last+1 {
			t.Errorf("Inspect: got %+v, want the writer with token %d", info, last+1)
		}
		a.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Share: reader}, store.ErrStolen) // a reader
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
		c.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: 3 * long, Share: reader}, nil)
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
		a.wantRenewal(renewal, store.ErrExpired) // permits from before
		if info := b.Inspect("key"); info.Used != 3 || len(info.Holders) != 1 {
			t.Errorf("Inspect: got %d permits of %d holders, want 3 of one", info.Used, len(info.Holders))
		}
		a.Want(tryOf(permits("key", "c", 1, 3)), store.Held)
	})
}

// A renewal from before a downgrade may arrive late. It does not bring back what was taken by force.
func TestForceInTheGraceEndsWhatWasAWriter(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		held := c.Hold("key", "a")
		c.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: held.Token, Rest: &reader})
		promote()
		c.force("key")
		late := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: held.Token})
		after := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: held.Token, Share: reader})
		if late.Err == nil || after.Err == nil {
			t.Errorf("late renewal, and one of the reader, after Force: got %v, %v, want losses; the server has %+v", late.Err, after.Err, c.Inspect("key"))
		}
	})
}

// In the grace a downgrade draws a number just above its own. A writer that the lost server granted the key
// later has a larger one, and is written anew.
func TestADowngradeInTheGraceYieldsToANewerWriter(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		held := a.Hold("key", "old")
		newer := sv.clock(t) // the lost server took the key by force and gave it to b
		promote()
		rest := a.release(store.ReleaseRequest{Key: "key", Owner: "old", Token: held.Token, Rest: &reader})
		err := b.renew(store.RenewRequest{Key: "key", Owner: "newer", TTL: long, Token: newer}).Err
		if err != nil {
			t.Errorf("Renew of the newer writer (token %d, old %d, old as a reader %+v): got %v, want nil", newer, held.Token, rest.Grant, err)
		}
	})
}

// A release that queues again in the grace is told for how long the grace lasts, not the TTL of what it ends.
func TestRequeueInTheGraceTellsItsEnd(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		tokens := map[bool]int64{}
		for _, wide := range []bool{false, true} {
			tokens[wide] = c.Hold(fmt.Sprint("key", wide), "a").Token
		}
		promote()
		for _, wide := range []bool{false, true} {
			key := fmt.Sprint("key", wide)
			c.Acquire(redistest.Request(key, "z")) // the grace begins
			c.release(store.ReleaseRequest{Key: key, Owner: "z"})
			c.renew(store.RenewRequest{Key: key, Owner: "a", TTL: 5 * long, Token: tokens[wide]})
			c.session.shared.note(key, wide)
			again := redistest.Request(key, "b")
			got := c.release(store.ReleaseRequest{Key: key, Owner: "a", Token: tokens[wide], Requeue: &again})
			if got.Requeue.Remaining > got.Requeue.Grace+time.Second {
				t.Errorf("wide %v: Remaining: got %v, want the grace's %v", wide, got.Requeue.Remaining, got.Requeue.Grace)
			}
		}
	})
}

// A renewal of a reader whose downgrade the server has forgotten asks for notifications, too.
func TestAReaderThatIsAWriterHereIsToldOfWaiters(t *testing.T) {
	sv := onMiniredis(t)
	st := sv.store(t)
	a, b := join(t, st), join(t, st)
	q := redistest.Request("key", "a")
	q.NotifyQueued, q.NotifyRequests = false, false
	held := a.Want(q, store.Granted)
	if err := a.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: held.Token + 1000, NotifyQueued: true, Share: reader}).Err; err != nil {
		t.Fatal(err)
	}
	b.Want(redistest.Request("key", "b"), store.Waiting)
	value := sv.Do(t, "GET", sv.redisKey("key", 'l'))
	if words := strings.Fields(value); !strings.Contains(words[3], "h") {
		t.Errorf("flags of the record: got %s, want h, too", words[3])
	}
}

// In the grace a holding that the server has forgotten can end, but no part of it is left to go on.
func TestARestOfWhatWasForgottenIsALoss(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		rests := map[string]store.Share{"all": reader, "permits": {Mode: store.Permits, Weight: 1, Limit: 5}}
		tokens := map[string]int64{"all": c.Hold("all", "a").Token, "permits": c.Want(permits("permits", "a", 3, 5), store.Granted).Token}
		for key := range rests {
			sv.Do(t, "DEL", sv.redisKey(key, 'l'), sv.redisKey(key, 's'), sv.redisKey(key, 'h'))
		}
		promote()
		for key, rest := range rests {
			got := c.release(store.ReleaseRequest{Key: key, Owner: "a", Token: tokens[key], Rest: &rest})
			if got.WasHeld && (key == "permits" || got.Grant.Token <= tokens[key] || got.Grant.Fence <= tokens[key] || !c.Inspect(key).Held) {
				t.Errorf("%s: got %+v, want a loss: the server has %+v", key, got, c.Inspect(key))
			}
		}
	})
}
