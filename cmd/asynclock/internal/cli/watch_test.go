// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// TestWatch: what is there, and each change, for people and as JSON.
func TestWatch(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "orders/1", "other")
	people := redis.talk(t, "watch", "orders/", "--interval", "50ms")
	objects := redis.talk(t, "watch", "orders/", "--json", "--interval", "50ms")
	both := func(line, object string) {
		t.Helper()
		people.says(t, line)
		objects.says(t, object)
	}
	both("  found    orders/1  a test  token ", `"change":"found","key":"orders/1","held":true,"holder":"a test",`)

	holds := redis.talk(t, "hold", "orders/2", "--holder", "first")
	both("  taken    orders/2  first  token ", `"change":"taken","key":"orders/2","held":true,"holder":"first",`)
	next := redis.talk(t, "hold", "orders/2", "--holder", "next")
	both("  waiting  orders/2  first  token ", `"change":"waiting","key":"orders/2","held":true,"holder":"first",`)
	holds.stdin.Close()
	both("  passed   orders/2  next  token ", `"change":"passed","key":"orders/2","held":true,"holder":"next",`)
	next.stdin.Close()
	both("  freed    orders/2  next  token ", `"change":"freed","key":"orders/2","held":false,"holder":"","token":0,`)
	permit := redis.talk(t, "hold", "orders/3", "--permits", "1", "--of", "3")
	permit.says(t, "\n")
	both("  1 of 3 permits", `"change":"taken","key":"orders/3",`)
	redis.talk(t, "hold", "orders/3", "--permits", "2", "--of", "3").says(t, "\n")
	both("  3 of 3 permits", `"change":"shares","key":"orders/3",`)

	if text := people.stdout.String() + objects.stdout.String(); strings.Contains(text, "other") {
		t.Errorf("got %s, want orders/ only", text)
	}
	if text := people.stdout.String(); !strings.Contains(text, "  1 waiting, 0 before\n") {
		t.Errorf("got %s, want how many waited before", text)
	}
	token := regexp.MustCompile(`passed   orders/2  next  token ([0-9]+)`).FindStringSubmatch(people.stdout.String())
	for line := range strings.Lines(objects.stdout.String()) {
		got := object(t, line, "time", "change", "key", "held", "holder", "token", "remaining_ms", "waiters", "mode", "used", "limit",
			"previous_holder", "previous_token", "previous_waiters", "previous_used")
		if got["change"] == "freed" && (got["previous_holder"] != "next" || got["previous_token"].(json.Number).String() != token[1]) {
			t.Errorf("got %s, want the holder of before and token %s", line, token[1])
		}
	}
}

// TestWatchGoesOn when the server does not answer for a while, says so once, and prints what has changed meanwhile.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "k")
	var down atomic.Bool
	redis.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
		if command == "SCAN" && down.Load() {
			c.WriteError("LOADING Redis is loading the dataset in memory")
			return true
		}
		return standalone(c, command)
	})
	watches := redis.talk(t, "watch", "--interval", "50ms")
	watches.says(t, "  found    k  ")
	down.Store(true)
	kit.Eventually(t, "an outage", func() bool { return strings.Contains(watches.stderr.String(), "; going on") })
	redis.hold(t, "meanwhile")
	down.Store(false)
	watches.says(t, "  taken    meanwhile  ")
	want := regexp.MustCompile(`^asynclock: the server has not answered for 3\.[0-9]s; going on\nasynclock: the server answers again\n$`)
	kit.Eventually(t, "messages", func() bool { return strings.Contains(watches.stderr.String(), "again") })
	if got := watches.stderr.String(); !want.MatchString(got) {
		t.Errorf("got %q, want it said once", got)
	}
}

// TestWatchSaysWhatItCanNotRead, and goes on with the other keys.
func TestWatchSaysWhatItCanNotRead(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "k", "other")
	for _, key := range redis.Keys() {
		if strings.HasSuffix(key, ":k:l") {
			_ = redis.Set(key, "foreign")
		}
	}
	watches := redis.talk(t, "watch", "--interval", "50ms")
	watches.says(t, "  found    other  ")
	redis.hold(t, "third")
	watches.says(t, "  taken    third  ")
	if got := watches.stderr.String(); strings.Count(got, "foreign data") != 1 || strings.Contains(watches.stdout.String(), "  k  ") {
		t.Errorf("got %q and %q, want the key named once, on stderr", watches.stdout.String(), got)
	}
}
