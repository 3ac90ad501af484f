// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// setEpoch writes the four numbers of the epoch of a key's bucket.
func (sv *server) setEpoch(t *testing.T, key string, ready, longest, older, turn int64) {
	t.Helper()
	id, _, _, _, _ := sv.epochOf(t, key)
	fields := []string{id}
	for _, n := range []int64{ready, longest, older, turn} {
		fields = append(fields, strconv.FormatInt(n, 10))
	}
	sv.do(t, "SET", sv.epoch(bucketOf(key)), strings.Join(fields, " "))
}

// Who has lost its key by force, and has not heard of it, does not write its
// holding anew, however long the grace is.
func TestForceInTheGraceIsNotUndone(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		token := c.hold("key", "a").First
		sv.setEpoch(t, "key", 0, millis(time.Hour), 0, sv.clock(t)/1000+millis(time.Hour))
		promote()
		if held, err := c.session.Force(t.Context(), "key"); err != nil || !held {
			t.Fatalf("Force: got %v, %v, want true", held, err)
		}
		c.release(asynclock.ReleaseRequest{Key: "key", Owner: "another", Uncertain: true})
		if ttl := sv.number(t, "PTTL", sv.redisKey("key", 'x')); ttl < millis(59*time.Minute) {
			t.Errorf("the old holder is remembered as gone for %d ms, want the grace, an hour", ttl)
		}
		if got := c.renew(asynclock.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}).Err; !errors.Is(got, asynclock.ErrExpired) {
			t.Errorf("Renew: got %v, want ErrExpired", got)
		}
		if info := c.inspect("key"); info.Held {
			t.Errorf("got %+v, want nobody to hold it", info)
		}
	})
}

// A request without a ticket may be a repetition by one who has queued, and been
// granted the key since.
func TestWhoQueuesBehindAHolderLearnsOfTheGrace(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		c.hold("key", "a")
		c.wait("key", "b")
		promote()
		got := c.wait("key", "b")
		if now := sv.clock(t); got.Mark <= now {
			t.Errorf("mark: got %d, want more than %d, which is now", got.Mark, now)
		}
	})
}

// Of whoever is overruled nothing is left, not even the time.
func TestAHoldingIsWrittenAnewForItsOwnTTL(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		token := c.hold("key", "a").First
		sv.do(t, "PEXPIRE", sv.redisKey("key", 'l'), "3600000")
		promote()
		if err := c.renew(asynclock.RenewRequest{Key: "key", Owner: "b", TTL: long, Token: token + 1}).Err; err != nil {
			t.Fatal(err)
		}
		if ttl := sv.number(t, "PTTL", sv.redisKey("key", 'l')); ttl > millis(long) {
			t.Errorf("TTL: got %d ms, want at most %d", ttl, millis(long))
		}
	})
}

func TestTTLsOfPeriodsThatAreOverDoNotCount(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		c.hold("key", "a")
		sv.setEpoch(t, "key", 0, millis(time.Hour), millis(24*time.Hour), 1)
		promote()
		for range 2 {
			if got := c.wait("key", "b").Remaining; got > time.Hour || got < 59*time.Minute {
				t.Errorf("grace: got %v, want an hour, the longest TTL of the period before", got)
			}
		}
	})
}

func TestAClockThatIsSetBackForgetsNoTTL(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		c := join(t, sv.store(t))
		token := c.hold("key", "a").First
		later := sv.clock(t)/1000 + millis(100*time.Hour)
		for name, look := range map[string]func(){
			"acquire": func() { c.wait("key", "b") },
			"renew": func() {
				if err := c.renew(asynclock.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}).Err; err != nil {
					t.Fatal(err)
				}
			},
		} {
			sv.setEpoch(t, "key", 0, millis(long), millis(24*time.Hour), later)
			look()
			_, _, _, older, turn := sv.epochOf(t, "key")
			if older != millis(24*time.Hour) || turn >= later {
				t.Errorf("%s: got an older TTL of %d ms until %d, want 24 h, in a period that begins now", name, older, turn)
			}
		}
	})
}

// Out of memory, holders go on all the same.
func TestAServerOutOfMemoryWritesAnew(t *testing.T) {
	sv := ownServer(t)
	c := join(t, sv.store(t))
	token := c.hold("key", "a").First
	sv.do(t, "DEL", sv.redisKey("key", 'l'))
	for bucket := range buckets {
		fields := strings.Fields(sv.do(t, "GET", sv.epoch(bucket)))
		fields[0] = strings.Repeat("0", 40)
		sv.do(t, "SET", sv.epoch(bucket), strings.Join(fields, " "))
	}
	sv.do(t, "CONFIG", "SET", "maxmemory", "1")
	if err := c.renew(asynclock.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: token}).Err; err != nil {
		t.Errorf("Renew: got %v, want it written anew", err)
	}
}
