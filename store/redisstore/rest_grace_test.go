// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

var restReader = store.Share{Mode: store.Shared}

// In the grace a holding that the server has forgotten can end, but nothing of it is left to go on.
func TestARestOfAForgottenHoldingIsALoss(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		held := c.Hold("key", "a")
		sv.Do(t, "DEL", sv.redisKey("key", 'l'))
		promote()
		got := c.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: held.Token, Rest: &restReader})
		if got.WasHeld && (got.Grant.Token <= held.Token || got.Grant.Fence <= held.Token) {
			t.Errorf("Rest in the grace: got %+v, want a loss, or a token above %d", got, held.Token)
		}
		if info := c.Inspect("key"); got.WasHeld && !info.Held {
			t.Errorf("Rest was answered with WasHeld, and the server has %+v", info)
		}
	})
}

// The same holds for permits.
func TestARestOfForgottenPermitsIsALoss(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		held := c.Want(permits("key", "a", 3, 5), store.Granted)
		sv.Do(t, "DEL", sv.redisKey("key", 'l'), sv.redisKey("key", 's'), sv.redisKey("key", 'h'))
		promote()
		got := c.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: held.Token, Rest: &store.Share{Mode: store.Permits, Weight: 1, Limit: 5}})
		if got.WasHeld {
			t.Errorf("Rest in the grace: got %+v, want a loss: the server has %+v", got, c.Inspect("key"))
		}
	})
}

// A renewal from before a downgrade may arrive late. It does not bring back what was taken by force.
func TestForceInTheGraceEndsWhatWasAWriter(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		held := c.Hold("key", "a")
		c.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: held.Token, Rest: &restReader})
		promote()
		if ok, err := c.session.Force(t.Context(), "key", 0); !ok || err != nil {
			t.Fatal(ok, err)
		}
		late := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: held.Token})
		after := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: held.Token, Share: restReader})
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
		rest := a.release(store.ReleaseRequest{Key: "key", Owner: "old", Token: held.Token, Rest: &restReader})
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
	if err := a.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: held.Token + 1000, NotifyQueued: true, Share: restReader}).Err; err != nil {
		t.Fatal(err)
	}
	b.Want(redistest.Request("key", "b"), store.Waiting)
	value := sv.Do(t, "GET", sv.redisKey("key", 'l'))
	if words := strings.Fields(value); !strings.Contains(words[3], "h") {
		t.Errorf("flags of the record: got %s, want h, too", words[3])
	}
}
