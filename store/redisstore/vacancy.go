// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A key that nobody waits for is left vacant: in place of the holder's record there is the last
// token. A client that finds the very vacancy that it left knows that nobody had the key meanwhile. So
// it need not look at anything else, and can choose its token beforehand.
//
// For that the session remembers the vacancies that it left, and the store what the servers said
// about themselves. Either may be out of date. The script compares both with what is there, and if
// they differ it goes on as if nothing had been remembered.

// isVacancy reports whether the value of a lock's first key may be a vacancy.
func isVacancy(value string) bool {
	return value != "" && len(value) <= len("9007199254740992") && strings.Trim(value, "0123456789") == ""
}

// vacancies are the tokens that a session left behind in the keys that it gave back last. A key
// takes the place of another one of the same hash.
type vacancies struct {
	places atomic.Pointer[[vacanciesKept]vacancy]
}

// vacanciesKept bounds the memory of a session: 64 KB, from its first release on.
const vacanciesKept = 4096

// A vacancy is read and written without a lock. If two releases write it at once, it may be made of
// both, and is wrong.
type vacancy struct {
	hash  atomic.Uint64 // of the key
	token atomic.Int64
}

var vacanciesSeed = maphash.MakeSeed()

// note remembers the token that was left in a key.
func (v *vacancies) note(key string, token int64) {
	places := v.places.Load()
	if places == nil {
		v.places.CompareAndSwap(nil, new([vacanciesKept]vacancy))
		places = v.places.Load()
	}
	hash := maphash.String(vacanciesSeed, key)
	place := &places[hash%vacanciesKept]
	place.hash.Store(hash)
	place.token.Store(token)
}

// token returns the token that was left in a key, or 0 if none is known.
func (v *vacancies) token(key string) int64 {
	places := v.places.Load()
	if places == nil {
		return 0
	}
	hash := maphash.String(vacanciesSeed, key)
	place := &places[hash%vacanciesKept]
	if place.hash.Load() != hash {
		return 0
	}
	return place.token.Load()
}

// A sighting is what a server said about itself when it granted a key.
type sighting struct {
	history string        // the id of its replication history
	longest time.Duration // the longest TTL that the epoch of the key's bucket knew
	clock   int64         // in microseconds
	at      time.Time     // when its answer came
}

// sightingFor is how long a sighting is used. A script compares the history itself, so the age of
// a sighting is no risk to exclusion. But the epoch notes the clock only where it is looked at.
const sightingFor = time.Second

// saw notes a sighting of the server that the key is on.
func (st *Store) saw(key string, seen *sighting) { st.sightings[bucketOf(key)].Store(seen) }

// chosen returns a token that is not ahead of the server's clock. Clocks that run at rates that
// differ by a hundredth are allowed for. A server's clock that is set back is not: until the next
// sighting tokens are ahead of it. The epoch sees to it that they go on rising.
func (g *sighting) chosen() int64 {
	passed := time.Since(g.at)
	return g.clock + (passed - passed/100).Microseconds()
}

// An expectation is what a request for a key is based on: the guard, and what the session has seen.
type expectation struct {
	guard
	vacancy int64  // the token of the vacancy that the session left; 0: none
	chosen  int64  // the token for its next holding
	history string // in which the server has granted keys of the bucket
}

// expect returns what a request can be based on. Without a guard it is nothing. Two may hold the key
// then after a failover, and only tokens that the server itself gives keep them apart.
func (s *session) expect(q *store.AcquireRequest) expectation {
	e := expectation{guard: s.store.guard(q.Key)}
	left := s.vacancies.token(q.Key)
	if left == 0 || q.Ticket != 0 || e.grace == 0 {
		return e
	}
	seen := s.store.sightings[bucketOf(q.Key)].Load()
	if seen == nil || time.Since(seen.at) > sightingFor || q.TTL > seen.longest {
		return e
	}
	if chosen := seen.chosen(); chosen > left {
		e.vacancy, e.chosen, e.history = left, chosen, seen.history
	}
	return e
}

// expect adds the arguments of acquire.lua about what was seen.
func (c *call) expect(e expectation) {
	c.chosen = e.chosen
	c.number(e.vacancy)
	c.number(e.chosen)
	c.text(e.history)
}

// replyChosen is what acquire.lua answers if the key was granted with the token that was chosen.
const replyChosen = 1

// grantedAsChosen is the reply to a request whose token was chosen.
func grantedAsChosen(c *call, q *store.AcquireRequest, address string) store.AcquireReply {
	return store.AcquireReply{
		Status:     store.Granted,
		Grant:      store.Grant{Token: c.chosen, TokensFollowClock: true},
		WillNotify: q.NotifyRequests && address != noAddress,
	}
}
