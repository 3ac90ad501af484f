// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

func TestHoldersWriteAnewWhatIsMissing(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		token := a.Hold("key", "a").Token
		renewal := store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token + 3, Description: "a at home"}
		sv.Do(t, "DEL", sv.redisKey("key", 'l'), sv.redisKey("key", 'f'))
		a.wantRenewal(renewal, store.ErrExpired) // without a reason
		promote()
		b.Wait("key", "b")
		b.Wait("key", "a") // the client waited, and the server forgot that it was granted the key
		if got := a.renew(renewal); got.Err != nil || got.Waiters != 1 {
			t.Errorf("got %+v, want it renewed, and b to wait", got)
		}
		if info := b.Inspect("key"); !info.Held || info.Token != token+3 || info.Holder != "a at home" || info.Waiters != 1 {
			t.Errorf("got %+v, want it held by a under token %d", info, token+3)
		}
		older := store.RenewRequest{Key: "key", Owner: "older", TTL: long, Token: token + 2}
		b.wantRenewal(older, store.ErrStolen) // by one with a smaller token
		same := store.RenewRequest{Key: "key", Owner: "same", TTL: long, Token: token + 3}
		b.wantRenewal(same, store.ErrStolen) // by one with the same token
		newer := store.RenewRequest{Key: "key", Owner: "newer", TTL: long, Token: token + 9}
		b.wantRenewal(newer, nil) // by one with a larger token
		// It hears of those who queue, and of those who ask in vain, for all the server knows.
		b.release(store.ReleaseRequest{Key: "key", Owner: "b"})
		a.Wait("key", "c")
		b.Heard(store.EventQueued, "newer")
		b.Heard(store.EventRequested, "newer")
		// With a renewal on its way a release is not as good as the first.
		if !b.releaseAgain(store.ReleaseRequest{Key: "key", Owner: "newer", Token: token + 9}).WasHeld {
			t.Error("Release: got WasHeld false, want true")
		}
		b.wantRenewal(newer, store.ErrExpired) // a renewal that is late
		sv.endGrace(t, "key")
		if got := a.Want(redistest.Request("key", "c"), store.Granted); got.Token <= token+9 {
			t.Errorf("token: got %d, want more than %d", got.Token, token+9)
		}
	})
}

// A vacancy with the token of a holding, or with a larger one, shows that the holding was given back,
// or that somebody had the key later.
func TestAVacancyIsNotWrittenOver(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		renewal := store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: c.Hold("key", "a").Token}
		sv.Do(t, "SET", sv.redisKey("key", 'l'), vacancyOf(renewal.Token+1), "PX", "60000")
		promote()
		for range 2 {
			if got := c.renew(renewal).Err; !errors.Is(got, store.ErrExpired) {
				t.Errorf("with token %d: got %v, want ErrExpired", renewal.Token, got)
			}
			renewal.Token++
		}
		c.wantRenewal(renewal, nil) // with a larger token
	})
}

// A release in the grace need not be preceded by a renewal.
func TestAReleaseOfWhatWasForgotten(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		token := c.Hold("key", "a").Token + 1e9
		sv.Do(t, "DEL", sv.redisKey("key", 'l'), sv.redisKey("key", 'f'))
		c.Hold("another", "a")
		c.Wait("another", "b")
		promote()
		c.releaseHeld(store.ReleaseRequest{Key: "key", Owner: "a", Token: token})
		if got := sv.Number(t, "GET", sv.redisKey("key", 'f')); got != token {
			t.Errorf("counter: got %d, want %d as used", got, token)
		}
		if c.release(store.ReleaseRequest{Key: "another", Owner: "b"}).WasHeld {
			t.Error("of a waiter: got WasHeld true, want false")
		}
		c.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}, store.ErrExpired) // a renewal that is late
	})
}

// Nor is it a shortcut past the epoch: the renewal may have been sent twice.
func TestAReleaseOfWhatWasWrittenAnew(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		renewal := store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: c.Hold("key", "a").Token}
		sv.Do(t, "DEL", sv.redisKey("key", 'l'), sv.redisKey("key", 'f'))
		promote()
		c.wantRenewal(renewal, nil)
		c.releaseHeld(store.ReleaseRequest{Key: "key", Owner: "a", Token: renewal.Token})
		if n := sv.Number(t, "EXISTS", sv.redisKey("key", 'l')); n != 0 {
			t.Error("got a vacancy, which the shortcut leaves; want that the owner is remembered")
		}
		c.wantRenewal(renewal, store.ErrExpired) // a renewal that is late
	})
}

// FLUSHALL leaves no trace to others than those who hold something.
func TestARenewalShowsThatAllWasFlushed(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		token := a.Hold("key", "a").Token
		sv.Do(t, "DEL", sv.redisKey("key", 'l'), sv.redisKey("key", 'f'), sv.epoch(bucketOf("key")))
		a.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}, nil)
		a.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: token})
		if got := b.Acquire(redistest.Attempt("key", "b")); !errors.Is(got.Err, store.ErrUnreachable) {
			t.Errorf("Acquire: got %+v, want ErrUnreachable", got)
		}
	})
}

// Of whoever is overruled nothing is left, not even the time.
func TestAHoldingIsWrittenAnewForItsOwnTTL(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		token := c.Hold("key", "a").Token
		sv.Do(t, "PEXPIRE", sv.redisKey("key", 'l'), "3600000")
		promote()
		if err := c.renew(store.RenewRequest{Key: "key", Owner: "b", TTL: long, Token: token + 1}).Err; err != nil {
			t.Fatal(err)
		}
		if ttl := sv.Number(t, "PTTL", sv.redisKey("key", 'l')); ttl > millis(long) {
			t.Errorf("TTL: got %d ms, want at most %d", ttl, millis(long))
		}
	})
}

// Out of memory, holders go on all the same.
func TestAServerOutOfMemoryWritesAnew(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t))
	token := c.Hold("key", "a").Token
	sv.Do(t, "DEL", sv.redisKey("key", 'l'))
	sv.promote(t)
	sv.Do(t, "CONFIG", "SET", "maxmemory", "1")
	c.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}, nil)
}

// After a restart a holder's inbox is usually not known to work yet when the holder writes
// its holding anew. The inbox works a moment later, and the holder has to be notified of
// owners that queue then.
func TestAHoldingIsWrittenAnewWithItsInbox(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		token := a.Hold("key", "a").Token
		sv.Do(t, "DEL", sv.redisKey("key", 'l'), sv.redisKey("key", 'f'))
		promote()
		a.doubt()
		a.wantRenewal(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}, nil)
		b.Wait("key", "b")
		a.Heard(store.EventQueued, "a")
	})
}
