// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

func TestParseMessage(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]store.Event{
		"c a": {Kind: store.EventQueued, Owner: "a"},
		"a b": {Kind: store.EventWake, Owner: "b"},
		"r a": {Kind: store.EventForced, Owner: "a"},
		"w a": {Kind: store.EventRequested, Owner: "a"},
		"g a.5 1763000000123456 4500 0 1": {
			Kind: store.EventGrant, Owner: "a.5", GrantTTL: 4500 * time.Millisecond,
			Grant: store.Grant{Token: 1763000000123456, TokensFollowClock: true},
		},
		"s a.5 9 4500 2 7 0": {
			Kind: store.EventGrant, Owner: "a.5", GrantTTL: 4500 * time.Millisecond, Grant: store.Grant{Token: 9, Fence: 7}, Waiters: 2,
		},
		"s a.5 9 4500 2 0 3": {
			Kind: store.EventGrant, Owner: "a.5", GrantTTL: 4500 * time.Millisecond, Grant: store.Grant{Token: 9, Weight: 3}, Waiters: 2,
		},
		"g a 1 1 7 0": {Kind: store.EventGrant, Owner: "a", GrantTTL: time.Millisecond, Grant: store.Grant{Token: 1}, Waiters: 7},
	} {
		if got, ok := parseMessage(payload); !ok || got != want {
			t.Errorf("%q: got %+v, %v; want %+v", payload, got, ok, want)
		}
	}
	for _, payload := range []string{
		"", " ", "c", "c ", "c -", "c a ", "c a b", "x a", "cc a", " c a", "r", "r a 1", "w", "w a 1", "a", "a a 1", "g", "g a", "g a 1", "g a 1 1", "g a 1 1 0", "g a 1 1 0 ",
		"g a 1 1 0 1 ", "g a 1 1 0 1 1", "g a 0 1 0 1", "g a 1 0 0 1", "g a 1 1 0 2", "g a +1 1 0 1", "g a -1 1 0 1", "g a 1 1 -1 1", "g a 1.5 1 0 1",
		"g a 0x1 1 0 1", "g a 1e3 1 0 1", "g a 1_0 1 0 1", "g a  1 1 0 1", "g a\n 1 1 0 1", "g ä 1 1 0 1", "g a 9007199254740992 1 0 1",
		"g a 99999999999999999999 1 0 1", "g a 1 9223372036855 0 1", "g a 1 1 2147483648 1", "c " + strings.Repeat("a", redisconn.MaxFieldLen+1),
		"s a 9 1 0", "s a 9 1 0 7", "s a 9 1 0 7 0 1", "s a 9 1 0 0 0", "s a 9 1 0 7 3", "s a 9 1 0 10 0", "s a 0 1 0 0 1", "s a 9 0 0 7 0",
		"s a 9 1 0 0 1000001", "s a 9 1 0 0 -1", "pubsub-probe:XYZ",
	} {
		if got, ok := parseMessage(payload); ok {
			t.Errorf("%q: got %+v, want it refused", payload, got)
		}
	}
}

func FuzzParseMessage(f *testing.F) {
	f.Add("g a.5 1763000000123456 4500 0 1")
	f.Add("s a.5 9 4500 0 7 0")
	f.Add("s a.5 9 4500 0 0 3")
	f.Add("c a")
	f.Add("a a")
	f.Add("r a")
	f.Add("w a")
	f.Fuzz(func(t *testing.T, payload string) {
		e, ok := parseMessage(payload)
		if !ok {
			return
		}
		if !redisconn.IsField(e.Owner) || e.Waiters < 0 {
			t.Fatalf("%q: got %+v, want a proper owner and count", payload, e)
		}
		want := ""
		switch e.Kind {
		case store.EventQueued:
			want = "c " + e.Owner
		case store.EventForced:
			want = "r " + e.Owner
		case store.EventRequested:
			want = "w " + e.Owner
		case store.EventWake:
			want = "a " + e.Owner
		case store.EventGrant:
			if e.Grant.Token <= 0 || e.GrantTTL <= 0 {
				t.Fatalf("%q: got %+v, want a token and TTL", payload, e)
			}
			clocked := "0"
			if e.Grant.TokensFollowClock {
				clocked = "1"
			}
			if e.Grant.Fence > 0 || e.Grant.Weight > 0 {
				want = strings.Join([]string{
					"s", e.Owner, strconv.FormatInt(e.Grant.Token, 10), strconv.FormatInt(e.GrantTTL.Milliseconds(), 10), strconv.Itoa(e.Waiters),
					strconv.FormatInt(e.Grant.Fence, 10), strconv.Itoa(int(e.Grant.Weight)),
				}, " ")
				break
			}
			want = strings.Join([]string{
				"g", e.Owner, strconv.FormatInt(e.Grant.Token, 10), strconv.FormatInt(e.GrantTTL.Milliseconds(), 10), strconv.Itoa(e.Waiters), clocked,
			}, " ")
		}
		// Leading zeros are the one liberty.
		if fields := strings.Fields(payload); len(strings.Fields(want)) != len(fields) || fields[1] != e.Owner {
			t.Errorf("%q: got %+v, which is written %q", payload, e, want)
		}
	})
}
