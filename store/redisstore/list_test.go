// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

func list(t testing.TB, c *client, prefix string) map[string]store.Info {
	t.Helper()
	found := make(map[string]store.Info)
	for info, err := range c.session.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("List %q: got %v", prefix, err)
		}
		found[info.Key] = info
	}
	return found
}

// A Redis key in another place, or of another prefix, is not listed. A holding without an end is.
func TestListTakesKeysOfItsPrefixInTheirPlace(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("a:held", "1")
		c.Hold("b:{x}", "2")
		sv.Do(t, "SET", sv.prefix+":{b00}:a:elsewhere:l", "not where its name belongs")
		other := *sv
		other.prefix += "x"
		join(t, other.store(t)).Hold("a:other prefix", "3")
		sv.Do(t, "PERSIST", sv.redisKey("a:held", 'l')) // as somebody else might
		found := list(t, c, "")
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, []string{"a:held", "b:{x}"}) {
			t.Errorf("List: got %q, want two keys", got)
		}
		for _, got := range []store.Info{found["a:held"], c.Inspect("a:held")} {
			if !got.Held || got.Remaining >= 0 {
				t.Errorf("held without a TTL: got %+v, want it held without an end", got)
			}
		}
		for info, err := range c.session.List(t.Context(), "") {
			if err != nil || info.Key == "" {
				t.Errorf("List that is broken off: got %+v, %v, want a key", info, err)
			}
			break
		}
	})
}

// A foreign key is yielded with its error, beside all others.
func TestListGoesOnBehindForeignKeys(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		for i := range 10 {
			c.Hold("key"+strconv.Itoa(i), "a")
		}
		sv.Do(t, "DEL", sv.redisKey("key3", 'l'))
		sv.Do(t, "RPUSH", sv.redisKey("key3", 'l'), "x")
		sv.Do(t, "SET", sv.redisKey("key4", 'l'), "text")
		sv.Do(t, "SET", sv.redisKey("key4", 'm'), "3")
		sv.Do(t, "SET", sv.redisKey("key5", 'm'), "no limit")
		var foreign []string
		held := 0
		for info, err := range c.session.List(t.Context(), "key") {
			switch {
			case errors.Is(err, store.ErrForeignData) && reflect.DeepEqual(info, store.Info{Key: info.Key}):
				foreign = append(foreign, info.Key)
			case err == nil && info.Held:
				held++
			default:
				t.Errorf("List: got %+v, %v; want a held key, or ErrForeignData with no more than the name", info, err)
			}
		}
		slices.Sort(foreign)
		if want := []string{"key3", "key4", "key5"}; held != 7 || !slices.Equal(slices.Compact(foreign), want) {
			t.Errorf("List: got %d held keys and errors about %q, want 7 and %q", held, foreign, want)
		}
	})
}

func TestInspectDescribesTheFirstTen(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		for i := range 12 {
			c.Wait("key", "w"+strconv.Itoa(i))
		}
		sv.Pass(20 * time.Millisecond)
		info := c.Inspect("key")
		if info.Waiters != 12 || len(info.Queue) != 10 {
			t.Fatalf("Inspect: got %d waiters, %d of them described; want 12 and 10", info.Waiters, len(info.Queue))
		}
		for i, w := range info.Queue {
			if want := "w" + strconv.Itoa(i) + " at home"; w.Holder != want || w.Age < 19*time.Millisecond || w.Age > 20*time.Second {
				t.Errorf("waiter %d: got %+v, want %q with an age of 20ms or more", i, w, want)
			}
		}
	})
}

// A replica that is down takes nothing from the list. A primary that is down does, so
// the list ends with an error, but behind the keys of the others.
func TestListInAClusterWhoseNodesAreDown(t *testing.T) {
	t.Parallel()
	const partly = "--cluster-require-full-coverage"
	sv, nodes := ownCluster(t, partly, "no")
	replica := sv.addReplica(t, nodes[0])
	var st *Store
	kit.Eventually(t, "clients know the replica", func() bool {
		if st != nil {
			st.Close()
		}
		st = sv.newStore(t, WithoutFailoverGrace())
		return len(st.conn.Driver.(rueidisDriver).conn.Commands.Nodes()) == 4
	})
	c := join(t, st)
	all := make(map[string]bool)
	for i := range 30 {
		key := "key" + strconv.Itoa(i)
		c.Hold(key, "a")
		all[key] = owner(t, nodes, sv.redisKey(key, 'l')) != 1
	}
	if got := len(list(t, c, "")); got != len(all) {
		t.Fatalf("with all nodes up: got %d keys, want %d", got, len(all))
	}

	_, _ = replica.Try("SHUTDOWN", "NOSAVE") // there is no answer
	if got := len(list(t, c, "")); got != len(all) {
		t.Errorf("without the replica: got %d keys, want %d", got, len(all))
	}

	// A primary may fail when it has already said that it is one.
	nodes[1].Do(t, "ACL", "SETUSER", "default", "-scan")
	if _, last := listOfTheOthers(t, c, all); !errors.Is(last, store.ErrDenied) {
		t.Errorf("with a primary that refuses: got error %v, want ErrDenied", last)
	}
	nodes[1].Do(t, "ACL", "SETUSER", "default", "+scan")

	_, _ = nodes[1].Try("SHUTDOWN", "NOSAVE")
	found, last := listOfTheOthers(t, c, all)
	if !errors.Is(last, store.ErrUnreachable) && !errors.Is(last, store.ErrOutcomeUnknown) {
		t.Errorf("without a primary: got error %v, want that it can't be reached", last)
	}
	n := 0
	for info, err := range c.session.List(t.Context(), "") { // whoever has enough with the last key is told nothing more
		if err != nil || !found[info.Key] {
			t.Errorf("once more: got %q, %v, want the same keys", info.Key, err)
		}
		if n++; n == len(found) {
			break
		}
	}
}

// listOfTheOthers lists what primaries have, one of which does not answer. all says of each
// key whether it is another's. It returns the keys, and the error behind them.
func listOfTheOthers(t *testing.T, c *client, all map[string]bool) (found map[string]bool, last error) {
	t.Helper()
	found = make(map[string]bool)
	for info, err := range c.session.List(t.Context(), "") {
		if last != nil {
			t.Errorf("behind the error: got %q, %v, want nothing", info.Key, err)
		}
		if last = err; err == nil {
			found[info.Key] = true
		}
	}
	for key, there := range all {
		if found[key] != there {
			t.Errorf("without a primary: got %q listed: %v, want %v", key, found[key], there)
		}
	}
	return found, last
}

// Waiters are read page by page. Those who have died are no waiters.
func TestManyWaitersAreCounted(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		crowd{waiters: 800, deadWaiters: 295}.make(t, sv, "key")
		info := c.Inspect("key")
		if info.Waiters != 505 || len(info.Queue) != shown {
			t.Errorf("Inspect: got %d waiters, and %d are described, want 505 and %d", info.Waiters, len(info.Queue), shown)
		}
		if got := list(t, c, "")["key"]; got.Waiters != 505 || got.Queue != nil {
			t.Errorf("List: got %+v, want 505 waiters, and none described", got)
		}
	})
}
