// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"
)

// A key that nobody waits for is left vacant: in place of the holder's record there is the last
// token. A vacancy shows that nobody else is there. So there is no need to look at any other Redis key.
//
// The session remembers where it left vacancies, and the store what the servers said about themselves.
// Either may be out of date: take.lua looks for itself. It answers for keys that are free, and leaves all
// others to acquire.lua.

// isVacancy reports whether the value of a lock's first key may be a vacancy.
func isVacancy(value string) bool {
	return value != "" && len(value) <= len("9007199254740992") && strings.Trim(value, "0123456789") == ""
}

// vacancies are the keys that a session left vacant last, by their hashes. A key takes the place of another one.
type vacancies struct {
	places atomic.Pointer[[vacanciesKept]atomic.Uint64]
}

// vacanciesKept bounds the memory of a session: 32 KB, from its first release on.
const vacanciesKept = 4096

// rivalsForgotten is after how many releases of a key, on average, it is expected again that nobody else takes it
// before the next request. To find out costs a command.
const rivalsForgotten = 8

var vacanciesSeed = maphash.MakeSeed()

// note remembers that a key was left vacant.
func (v *vacancies) note(key string) {
	if v.places.Load() == nil {
		v.places.CompareAndSwap(nil, new([vacanciesKept]atomic.Uint64))
	}
	place, hash := v.place(key)
	place.Store(hash)
}

// noted reports whether a key was left vacant.
func (v *vacancies) noted(key string) bool {
	place, hash := v.place(key)
	return place != nil && place.Load() == hash
}

// forget undoes note.
func (v *vacancies) forget(key string) {
	if place, hash := v.place(key); place != nil {
		place.CompareAndSwap(hash, 0)
	}
}

// place returns where a key is remembered, and how. It returns nil before there are places.
func (v *vacancies) place(key string) (place *atomic.Uint64, hash uint64) {
	places := v.places.Load()
	if places == nil {
		return nil, 0
	}
	hash = maphash.String(vacanciesSeed, key)
	return &places[hash%vacanciesKept], hash
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

// seen returns a sighting of the server that a key is on, from which follows that it grants the key for
// a TTL now, if it is still the same server. Otherwise it returns nil. So it does without a guard: two may hold
// the key then after a failover, and the server itself gives every token.
func (st *Store) seen(key string, ttl time.Duration) *sighting {
	seen := st.sightings[bucketOf(key)].Load()
	if seen == nil || time.Since(seen.at) > sightingFor || ttl > seen.longest || st.grace(key) == 0 {
		return nil
	}
	return seen
}

// least returns a time that the server's clock has reached, if it was not set back. Clocks that run at
// rates that differ by a hundredth are allowed for.
func (g *sighting) least() int64 {
	passed := time.Since(g.at)
	return g.clock + (passed - passed/100).Microseconds()
}
