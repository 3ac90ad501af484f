// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// locksOf makes a lock client of its own store on the server.
func (sv *server) locksOf(t *testing.T, name string) *asynclock.Client {
	t.Helper()
	c, err := asynclock.New(sv.store(t), asynclock.WithDescription(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("%s: Close: got %v, want no error", name, err)
		}
	})
	return c
}

// claim takes what a future gives.
func claim(t *testing.T, pending <-chan asynclock.Result) *asynclock.Lease {
	t.Helper()
	select {
	case got := <-pending:
		l, err := got.Lease()
		if err != nil {
			t.Fatal(err)
		}
		return l
	case <-time.After(20 * time.Second):
		t.Fatal("not in time: a lease")
		return nil
	}
}

// The attacker may publish, and not read. It knows everything except the owner ids: which
// channels there are, which tokens come next, and who had the key before.
func TestAPublisherMakesNoHolderAndEndsNoLease(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	holder, waiter := sv.locksOf(t, "holder"), sv.locksOf(t, "waiter")
	past, err := holder.Lock(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	over := strings.Fields(sv.Do(t, "GET", sv.redisKey("key", 'l')))[1]
	if err := past.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease, err := holder.Lock(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	pending := waiter.LockChan(t.Context(), "key")
	kit.Eventually(t, "a waiter", func() bool { return sv.Number(t, "ZCARD", sv.redisKey("key", 'q')) == 1 })

	sv.Do(t, "ACL", "SETUSER", "crier", "on", ">loud", "resetkeys", "resetchannels", "&"+sv.prefix+":*", "-@all", "+publish")
	option := redisconn.ForLocks(sv.Option)
	option.Username, option.Password = "crier", "loud"
	crier, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(crier.Close)
	channels, err := sv.Raw.Do(t.Context(), sv.Raw.B().Arbitrary("PUBSUB", "CHANNELS", sv.prefix+":*").Build()).AsStrSlice()
	if err != nil || len(channels) != 2 {
		t.Fatalf("channels: got %q, %v; want two", channels, err)
	}
	owners := []string{over, "", "-", "*", over[:24], over + "0", strings.ToUpper(over), sv.prefix, "key", "holder", "waiter"}
	for shard := range 256 { // one of them is right in its last digits
		owners = append(owners, fmt.Sprintf("%022d.%02x", 0, shard))
	}
	next := strconv.FormatInt(lease.Token()+1, 10)
	for _, channel := range channels {
		for _, owner := range owners {
			for _, payload := range []string{
				"g " + owner + " " + next + " 60000 0 1", "g " + owner + " 9000000000000000 60000 0 0", "g " + owner + " " + next + " -1 0 1",
				"r " + owner, "c " + owner, owner, "g", "g " + owner + "\n" + next,
			} {
				if err := crier.Do(t.Context(), crier.B().Publish().Channel(channel).Message(payload).Build()).Error(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	// The store's own messages arrive after the forged ones.
	third := sv.locksOf(t, "third").LockChan(t.Context(), "key")
	kit.Eventually(t, "two waiters", func() bool { return sv.Number(t, "ZCARD", sv.redisKey("key", 'q')) == 2 })
	select {
	case got := <-pending:
		l, err := got.Lease()
		t.Fatalf("the waiter got %v, %v while another holds the key", l, err)
	default:
	}
	if !lease.Valid(0) {
		t.Fatalf("the lease ended: %v", lease.Err())
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := lease.Token()
	for name, pending := range map[string]<-chan asynclock.Result{"waiter": pending} {
		l := claim(t, pending)
		if l.Token() <= last || l.Token() >= 9e15 {
			t.Errorf("%s: token: got %d, want a true one after %d", name, l.Token(), last)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := claim(t, third).Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// The line that docs/security.md draws: who has read a waiter's owner and may
// publish is believed. Should this test fail, the page promises too little.
func TestWhoKnowsAnOwnerIsBelieved(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	lease, err := sv.locksOf(t, "holder").Lock(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	pending := sv.locksOf(t, "waiter").LockChan(t.Context(), "key")
	kit.Eventually(t, "the waiter believes it", func() bool { // not a message that overtakes the answer to its request
		// The waiter and its channel change when its connection does.
		owner := strings.Trim(sv.Do(t, "ZRANGE", sv.redisKey("key", 'q'), "0", "0"), "[]")
		fields := strings.Fields(sv.Do(t, "HGET", sv.redisKey("key", 'w'), owner))
		if len(fields) > 1 && len(fields[1]) > 1 {
			next := strconv.FormatInt(sv.Number(t, "GET", sv.redisKey("key", 'f'))+1, 10)
			sv.Do(t, "PUBLISH", fields[1][1:], "g "+owner+" "+next+" 4500 0 0")
		}
		return len(pending) == 1
	})
	forged := claim(t, pending)
	if !forged.Valid(0) || !lease.Valid(0) {
		t.Errorf("valid: got %v and %v, want both", forged.Valid(0), lease.Valid(0))
	}
	if err := forged.Unlock(t.Context()); !errors.Is(err, store.ErrLost) {
		t.Errorf("Unlock: got %v, want ErrLost, for the store knows better", err)
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Errorf("Unlock: got %v, want no error", err)
	}
}

// A user who may write a lock's queue can put anything there. Forged entries cost time, or
// are reported. They never make two holders and never stop the queue for good.
func TestForgedQueueEntries(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t))
	told := " " + c.session.address(t.Context(), "any") + " "
	far := strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)
	for name, forged := range map[string]struct{ owner, score, entry string }{
		"alive for ever":        {"forged", "1", far + " - 20 - nobody"},
		"its TTL is 0":          {"forged", "1", far + " - 0 - nobody"},
		"its TTL is too large":  {"forged", "1", far + " - 99999999999999999999 - nobody"},
		"its TTL is no number":  {"forged", "1", far + " - 1e3 - nobody"},
		"its deadline is large": {"forged", "1", strings.Repeat("9", 400) + " - 20 - nobody"},
		"its channel is alien":  {"forged", "1", far + " pelsewhere 20 - nobody"},
		"its mode is alien":     {"forged", "1", far + " ?elsewhere 20 - nobody"},
		"its flags are alien":   {"forged", "1", far + " - 20 xyzh nobody"},
		"it has no owner":       {"", "1", far + " - 20 - nobody"},
		"its owner has spaces":  {"a b c", "1", far + " - 20 - nobody"},
		"its owner is nobody":   {"-", "1", far + " - 20 - nobody"},
		"its owner is binary":   {"\x00\xff\n", "1", far + " - 20 - nobody"},
		"its owner holds":       {"holder", "1", far + " - 20 - nobody"},
		"its place is negative": {"forged", "-inf", far + " - 20 - nobody"},
		"its place is a half":   {"forged", "0.5", far + " - 20 - nobody"},
		"it comes last":         {"forged", "+inf", far + " - 20 - nobody"},
		"it is empty":           {"forged", "1", ""},
		"it is long":            {"forged", "1", far + " - 20 - " + strings.Repeat("x", 1<<20)},
		// These can be told, so they are for release_fast.lua.
		"told, its TTL is short":       {"forged", "1", far + told + "20 - nobody"},
		"told, its TTL is 0":           {"forged", "1", far + told + "0 - nobody"},
		"told, its TTL is too large":   {"forged", "1", far + told + "99999999999999999999 - nobody"},
		"told, its owner has spaces":   {"a b c", "1", far + told + "20 - nobody"},
		"told, it has no owner":        {"", "1", far + told + "20 - nobody"},
		"told, its flags are alien":    {"forged", "1", far + told + "20 xyzh nobody"},
		"told, its deadline is beyond": {"forged", "1", strings.Repeat("9", 400) + told + "20 - nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			key := name
			token := c.Hold(key, "holder").Token
			c.Wait(key, "waiter")
			sv.Do(t, "ZADD", sv.redisKey(key, 'q'), forged.score, forged.owner)
			sv.Do(t, "HSET", sv.redisKey(key, 'w'), forged.owner, forged.entry)

			release := store.ReleaseRequest{Key: key, Owner: "holder", Token: token, Clean: true}
			got := c.session.Release(t.Context(), []store.ReleaseRequest{release})[0]
			if errors.Is(got.Err, store.ErrForeignData) {
				return // an operator has to look; nothing was changed
			}
			if got.Err != nil {
				t.Fatalf("Release: got %v, want no error or ErrForeignData", got.Err)
			}
			q := redistest.Request(key, "waiter")
			kit.Eventually(t, "the waiter's turn", func() bool {
				reply := c.Acquire(q)
				if reply.Err != nil {
					t.Fatalf("Acquire: got %v, want no error", reply.Err)
				}
				if reply.Status == store.Granted && reply.Token <= token {
					t.Fatalf("token: got %d, want more than %d", reply.Token, token)
				}
				return reply.Status == store.Granted
			})
			if other := c.Acquire(redistest.Request(key, "other")); other.Status != store.Waiting {
				t.Errorf("another's Acquire: got %+v, want it waiting", other)
			}
		})
	}
}
