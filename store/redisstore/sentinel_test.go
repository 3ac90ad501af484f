// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

func TestASentinelFailsOver(t *testing.T) {
	t.Parallel()
	p := sentinelPair(t)
	sv, replica := p.sv, p.replica
	st := sv.newStore(t, WithoutFailoverGrace())
	a, b := join(t, st), join(t, st)
	held := a.Hold("key", "a")
	b.Wait("key", "b")
	kit.Eventually(t, "the replica is in step", func() bool {
		return replica.Number(t, "EXISTS", sv.redisKey("key", 'l'), sv.redisKey("key", 'w')) == 2
	})

	p.promote()
	renewal := store.RenewRequest{Key: "key", Owner: "a", TTL: long}
	kit.Eventually(t, "the new primary renews", func() bool {
		err := a.renew(renewal).Err
		if err != nil && !errors.Is(err, store.ErrUnreachable) && !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Fatalf("Renew during a failover: got %v, want ErrUnreachable or ErrOutcomeUnknown", err)
		}
		return err == nil
	})
	kit.Eventually(t, "the waiter hears from the new primary", func() bool {
		n, err := sv.Try("PUBSUB", "NUMSUB", b.session.classic.Load().channel.name)
		return err == nil && strings.HasSuffix(n, " 1]") && b.Wait("key", "b").Recheck == 0
	})
	a.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: held.Token})
	if e := b.Heard(store.EventGrant, "b"); e.Grant.Token <= held.Token {
		t.Errorf("token: got %d, want more than %d", e.Grant.Token, held.Token)
	}
}
