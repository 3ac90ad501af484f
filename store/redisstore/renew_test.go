// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

func TestRenewBatches(t *testing.T) {
	for name, told := range map[string]bool{"usual": true, "of TTLs that the epochs have to be told": false} {
		t.Run(name, func(t *testing.T) { renewBatches(t, told) })
	}
}

// Of holdings that are renewed together, those whose holders ask to be notified get the flag.
func TestRenewTogetherNotesWhoAsksToBeNotified(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		var batch []store.RenewRequest
		for i := range 3 {
			key := "key" + strconv.Itoa(i)
			batch = append(batch, store.RenewRequest{Key: key, Owner: "a", TTL: long, Token: c.Hold(key, "a").Token, NotifyQueued: i != 1})
			c.session.store.reaches.tell(&batch[i], time.Now())
		}
		for i, got := range c.session.Renew(t.Context(), batch) {
			flags := strings.Fields(sv.Do(t, "GET", sv.redisKey(batch[i].Key, 'l')))[3]
			if asks := strings.Contains(flags, "h"); got.Err != nil || asks != batch[i].NotifyQueued {
				t.Errorf("renewal %d: got error %v and flags %s, want the flag %t", i, got.Err, flags, batch[i].NotifyQueued)
			}
		}
	})
}

// A queue may be longer than there may be permits.
func TestRenewBesideALongQueue(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		q := store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: c.Hold("key", "a").Token}
		c.session.store.reaches.tell(&q, time.Now())
		sv.Do(t, "ZADD", sv.redisKey("key", 'q'), "1", "b")
		if got := c.renew(q); got.Err != nil || got.Waiters != 1 {
			t.Errorf("got %+v, want one waiter", got)
		}
		for n, reply := range map[int64]bool{math.MaxUint32: true, math.MaxUint32 + 1: false} {
			r := renewing{session: c.session, batch: []store.RenewRequest{q}, replies: make([]store.RenewReply, 1)}
			r.readFast(redisdriver.ValueResult([]any{int64(1), n}), []int{0})
			if got := r.replies[0]; (got.Err == nil && got.Waiters == int(n)) != reply {
				t.Errorf("%d waiters: got %+v", n, got)
			}
		}
	})
}

func renewBatches(t *testing.T, told bool) {
	t.Helper()
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		const n = 200 // several calls, the last one not full
		acquires := make([]store.AcquireRequest, n)
		renewals := make([]store.RenewRequest, n)
		for i := range n {
			acquires[i] = redistest.Request("key"+strconv.Itoa(i), "owner"+strconv.Itoa(i))
			renewals[i] = store.RenewRequest{Key: acquires[i].Key, Owner: acquires[i].Owner, TTL: 2 * long}
		}
		for i, got := range c.session.Acquire(t.Context(), acquires) {
			if got.Status != store.Granted {
				t.Fatalf("Acquire %d: got %+v, want Granted", i, got)
			}
			renewals[i].Token = got.Token
			if told {
				c.session.store.reaches.tell(&renewals[i], time.Now())
			}
		}
		want := map[int]error{
			0: store.ErrInvalidKey, 10: store.ErrInvalidOption, 63: store.ErrInvalidOption, 64: store.ErrExpired,
			65: store.ErrStolen, 150: store.ErrForeignData, 151: store.ErrForeignData, 199: store.ErrInvalidOption,
		}
		renewals[0].Key = ""
		renewals[10].Owner = "two words"
		renewals[63].TTL = 0
		sv.Do(t, "DEL", sv.redisKey("key64", 'l'))
		renewals[65].Owner = "owner66"
		sv.Do(t, "SET", sv.redisKey("key150", 'l'), "of another kind")
		sv.Do(t, "DEL", sv.redisKey("key151", 'l'))
		sv.Do(t, "HSET", sv.redisKey("key151", 'l'), "field", "value")
		renewals[199].Token = -1
		for i, got := range c.session.Renew(t.Context(), renewals) {
			if !errors.Is(got.Err, want[i]) {
				t.Errorf("Renew %d: got error %v, want %v", i, got.Err, want[i])
			}
			left := sv.pttl(t, "key"+strconv.Itoa(i), 'l')
			if extended := left > long; extended != (want[i] == nil) {
				t.Errorf("TTL %d: got %v, want it extended only without an error", i, left)
			}
		}
	})
}
