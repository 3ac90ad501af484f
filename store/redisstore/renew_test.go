// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

func TestRenewBatches(t *testing.T) {
	for name, told := range map[string]bool{"usual": true, "of TTLs that the epochs have to be told": false} {
		t.Run(name, func(t *testing.T) { renewBatches(t, told) })
	}
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
