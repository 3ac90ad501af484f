// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// noted is the ms that the clock showed lately, by the epoch of a key's bucket.
func (sv *server) noted(t *testing.T, key string) int64 {
	t.Helper()
	fields := strings.Fields(sv.Do(t, "GET", sv.epoch(bucketOf(key))))
	noted, err := strconv.ParseInt(fields[epochFields-1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return noted
}

// setNoted writes that.
func (sv *server) setNoted(t *testing.T, key string, noted int64) {
	t.Helper()
	name := sv.epoch(bucketOf(key))
	fields := strings.Fields(sv.Do(t, "GET", name))
	fields[epochFields-1] = strconv.FormatInt(noted, 10)
	sv.Do(t, "SET", name, strings.Join(fields, " "))
}

// A holder that dies leaves no counter. If the clock is set back then, the epoch knows how far
// tokens may have come.
func TestTokensRiseAfterTheDeadThoughTheClockIsSetBack(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		c := join(t, sv.store(t))
		for what, next := range map[string]func(key string) int64{
			"a token":  func(key string) int64 { return c.Hold(key, "b").Token },
			"a ticket": func(key string) int64 { c.Hold(key, "b"); return c.Wait(key, "c").Ticket },
		} {
			first := c.Hold(what, "a").Token
			sv.expire(t, what)
			sv.wantLeft(t, what, "", "")
			noted := sv.clock(t)/1000 + time.Hour.Milliseconds()
			sv.setNoted(t, what, noted)
			floor := (noted + 3_000) * 1000
			if got := next(what); got < floor {
				t.Errorf("%s after %d: got %d, want at least %d, which may have been given", what, first, got, floor)
			}
			if got := c.Inspect(what).Token; got < floor {
				t.Errorf("token: got %d, want at least %d", got, floor)
			}
			if got := sv.noted(t, what); got != noted {
				t.Errorf("noted: got %d, want %d until the clock is past it", got, noted)
			}
		}
		// The next token of a key that was vacant is no smaller, either.
		left := c.leaves("key", "a")
		noted := sv.clock(t)/1000 + time.Hour.Milliseconds()
		sv.setNoted(t, "key", noted)
		place := &c.session.store.sightings[bucketOf("key")]
		place.Store(nil)
		if got := c.Hold("key", "b"); got.Token < (noted+3_000)*1000 || got.TokensFollowClock {
			t.Errorf("after the vacancy of %d: got %+v, want a token from %d on, not from the clock", left, got.Grant, (noted+3_000)*1000)
		}
	})
}

// The epoch notes the clock each second of use, and once more if the note can't be right.
func TestTheEpochNotesTheClock(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		st := sv.store(t)
		c := join(t, st)
		for what, tt := range map[string]struct {
			ago   time.Duration // of the note
			again bool          // whether the clock is noted
		}{
			"just now":    {0, false},
			"a second":    {time.Second, true},
			"an hour":     {time.Hour, true},
			"a day ahead": {-25 * time.Hour, true},
		} {
			c.Hold(what, "a")
			sv.expire(t, what)
			before := sv.clock(t)
			note := before/1000 - tt.ago.Milliseconds()
			sv.setNoted(t, what, note)
			got := c.Hold(what, "b")
			if after := sv.clock(t); got.Token < before || got.Token > after || !got.TokensFollowClock {
				t.Errorf("%s: got %+v, want a token from %d to %d, from the clock", what, got.Grant, before, after)
			}
			again := tt.again || sv.clock(t) >= before+1_000_000 // the machine is busy
			if noted := sv.noted(t, what); (noted != note) != tt.again && again == tt.again || tt.again && noted < before/1000 {
				t.Errorf("%s: noted: got %d after %d at %d; want it noted anew: %v", what, noted, note, before/1000, tt.again)
			}
			// A renewal for longer keeps the note.
			sv.setNoted(t, what, note)
			if err := c.renew(store.RenewRequest{Key: what, Owner: "b", TTL: time.Hour, Token: got.Token}).Err; err != nil {
				t.Fatal(err)
			}
			if noted := sv.noted(t, what); noted != note {
				t.Errorf("%s: noted after a renewal: got %d, want %d", what, noted, note)
			}
		}
		// The long way notes it, too.
		note := sv.clock(t)/1000 - 1000
		sv.setNoted(t, "ahead", note)
		sv.Do(t, "SET", sv.redisKey("ahead", 'f'), strconv.FormatInt(sv.clock(t)+1e9, 10), "PX", "60000")
		c.Hold("ahead", "a")
		if noted := sv.noted(t, "ahead"); noted == note {
			t.Errorf("noted: got %d a second after that, want it noted anew", noted)
		}
		now := sv.clock(t)
		sv.setNoted(t, "ahead", now/1000)
		sv.expire(t, "ahead")
		c.Hold("ahead", "b")
		if noted := sv.noted(t, "ahead"); noted != now/1000 && sv.clock(t) < now+1_000_000 {
			t.Errorf("noted: got %d less than a second after %d, want it as it was", noted, now/1000)
		}
	})
}

// A grant that says nothing about the server does not hide what was seen.
func TestASightingOutlastsAGrantWithoutOne(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		st := sv.store(t)
		c := join(t, st)
		c.leaves("key", "a")
		sv.setNoted(t, "key", 1)
		rival := join(t, st)
		rival.Hold("key", "b") // which notes the clock, and says nothing
		if seen := st.sightings[bucketOf("key")].Load(); seen == nil || seen.history != sv.fact("master_replid") {
			t.Errorf("sighting: got %+v, want the one of the first grant", seen)
		}
	})
}

// A clock that was not set back is no less than a sighting says, though rates differ a little.
func TestTheLeastIsBehindTheClock(t *testing.T) {
	t.Parallel()
	seen := sighting{clock: 1_000_000, at: time.Now().Add(-4 * time.Second)}
	got := seen.least()
	if most := seen.clock + time.Since(seen.at).Microseconds()*995/1000; got < 4_960_000 || got > most {
		t.Errorf("4 s after %d: got %d, want from 4960000 to %d", seen.clock, got, most)
	}
}
