// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/redisslot"
	"github.com/asynclock/asynclock-go/store"
)

// Java's names, and side keys that clients of every version have to agree on.
func TestNamesNeverChange(t *testing.T) {
	t.Parallel()
	n := newNames("shop")
	lock := n.lock("order:42")
	for _, tt := range []struct{ got, want string }{
		{lock, "shop:order:42"},
		{n.channel(lock), "shop-channel:shop:order:42"},
		{n.oldChannel, "shop-channel"},
		{strings.Join(n.patterns(), " "), "shop-channel shop-channel:*"},
		{strings.Join(n.keysOf("order:42"), " "), "shop:order:42 asynclock.spring:{9208}:shop:order:42:f asynclock.spring:{9208}:shop:order:42:x"},
		{side("x{0}", "f"), "asynclock.spring:{0}:x{0}:f"},
		{side("a{b}c", "f"), "asynclock.spring:{20203}:a{b}c:f"},
		{strings.Join(newNames(`[*?\]`).patterns(), " "), `\[\*\?\\\]-channel \[\*\?\\\]-channel:*`},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

// FuzzNames: side keys are where the lock is, whatever its name, and are the names
// of nothing else; and keys are found in their Redis keys.
func FuzzNames(f *testing.F) {
	for _, key := range []string{"order:42", "{", "}", "{}", "a}b{c", "{tag}", ":", "\x00", "注文"} {
		f.Add("shop", key)
		f.Add(key, key)
	}
	f.Fuzz(func(t *testing.T, registryKey, key string) {
		if checkRegistryKey(registryKey) != nil {
			return
		}
		n := newNames(registryKey)
		lock := n.lock(key)
		for _, kind := range []string{"f", "x"} {
			name := side(lock, kind)
			if redisslot.Of(name) != redisslot.Of(lock) {
				t.Errorf("%q is in slot %d, and its lock in %d", name, redisslot.Of(name), redisslot.Of(lock))
			}
			if _, ok := n.keyOf(name); ok {
				t.Errorf("%q is a lock's name, too", name)
			}
		}
		got, ok := n.keyOf(lock)
		if want := redisconn.CheckKey(key) == nil; ok != want || ok && got != key {
			t.Errorf("key of %q: got %q, %v; want %q, %v", lock, got, ok, key, want)
		}
	})
}

// FuzzDescribe: whatever somebody else has stored, people are told little of it.
func FuzzDescribe(f *testing.F) {
	for _, value := range []string{"", "x", "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed", "1B9D6BCD-BBFD-4B2D-9B5D-AB8DFBBD4BED", "{b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed}", strings.Repeat("x", 36)} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got := describe(value)
		if got != "another program" && (len(value) != 36 || got != "Spring RedisLockRegistry "+value[:8]+"…") {
			t.Errorf("describe(%q): got %q, want a fixed text, and of a registry's id 8 digits at most", value, got)
		}
		if !utf8.ValidString(got) {
			t.Errorf("describe(%q): got %q, want UTF-8", value, got)
		}
	})
}

// FuzzForced: a message ends a lease only if it names an owner as they are.
func FuzzForced(f *testing.F) {
	for _, payload := range []string{"", forcedPrefix, forcedPrefix + "a", forcedPrefix + "-", forcedPrefix + "a b", "shop:order:42"} {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		if owner, ok := parseForced(payload); ok && (payload != forcedPrefix+owner || !redisconn.IsField(owner)) {
			t.Errorf("parseForced(%q): got %q", payload, owner)
		}
	})
}

func TestBadRegistryKeys(t *testing.T) {
	t.Parallel()
	for _, registryKey := range []string{
		"", "\xff", strings.Repeat("x", 513), "asynclock.spring", "asynclock.spring:x", "asynclock.springs", "pubsub-probe:x",
	} {
		if err := checkRegistryKey(registryKey); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("%q: got %v, want ErrInvalidOption", registryKey, err)
		}
	}
	for _, registryKey := range []string{"a", "shop", " ", "a:b", "größe", "[*]", strings.Repeat("x", 512)} {
		if err := checkRegistryKey(registryKey); err != nil {
			t.Errorf("%q: got %v, want it accepted", registryKey, err)
		}
	}
}
