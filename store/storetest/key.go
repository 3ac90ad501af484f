// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var keyCases = []testCase{
	{"keys of any characters stay distinct", anyStore, hostileKeys},
	{"list takes a prefix of any characters literally", anyStore, hostilePrefixes},
	{"keys that are one lock are spelled as one", anyStore, spellings},
	{"keys of any characters have queues of their own", queues, hostileQueues},
}

// hostile are endings and beginnings that have a meaning in some store, or are easily confused.
var hostile = []string{
	"a", "A", "{", "}", "{}", "{a}", "}a{", "{{a}}", "}{",
	" ", "  ", "\t", "\n", "\r\n", "\x00", "\x7f", "\u200b", "\ufeff",
	"*", "**", "?", "[a]", "[^a]", "[", "]", "\\", `\*`, "^", "$",
	"%", "%%", "%25", "%2A", "%2a", "%7B", "+", "&", "=", "#",
	"/", "//", "..", ":", "::", ":l", ":q", ":w", ":f", ":x", "{b00}:x:l", "-", "_", ".",
	`"`, "'", "`", ";", "--", "\u00e9", "e\u0301", "\u4e16\u754c", "\U0001f512", "\u212a", "K", "k",
}

// hostileNames returns the case's keys, all of them with the case's own random name at one end.
func (w *world) hostileNames() []string {
	names := []string{w.key}
	for _, h := range hostile {
		names = append(names, w.key+h, h+w.key)
	}
	// Keys of the greatest length, and of the greatest length when escaped, that differ in the last
	// byte only.
	for _, filling := range []string{"%", "}", "\n", "x"} {
		full := w.key + strings.Repeat(filling, store.MaxKeyLen-len(w.key)-1)
		names = append(names, full, full+"1", full+"2")
	}
	return names
}

func hostileKeys(w *world) {
	a, b := w.join(), w.join()
	names := w.hostileNames()
	held := make([]holding, len(names))
	for i, key := range names {
		r := w.request()
		r.Key = key
		held[i] = a.hold(r) // free, so it is not another key's name
	}
	for i, key := range names {
		info := b.inspect(key)
		if info.Key != key || !info.Held || info.Holder != held[i].req.Description {
			w.Errorf("Inspect(%q): got %+v, want it held by %q", key, info, held[i].req.Description)
		}
		reply := a.renew(store.RenewRequest{Key: key, Owner: held[i].req.Owner, TTL: long, Token: held[i].Token})
		if reply.Err != nil {
			w.Errorf("Renew of %q: got %v, want no error", key, reply.Err)
		}
	}
	for i := range held {
		held[i].release()
		w.wantFree(b, names[i])
	}
}

func hostilePrefixes(w *world) {
	a, b := w.join(), w.join()
	names := w.hostileNames()
	for _, key := range names {
		r := w.request()
		r.Key, r.TTL = key, 10*time.Minute // a list looks at all keys of a server that has many, and this test makes many lists
		defer a.hold(r).release()
	}
	for _, prefix := range append(slices.Clone(names), w.key[:len(w.key)-1]) {
		var want []string
		for _, key := range names {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		w.wantList(b, prefix, want...)
	}
}

// spellings: keys that look like identifiers, by which a store may be tempted to know them. Others are in hostileKeys.
func spellings(w *world) {
	a, b := w.join(), w.join()
	spell := func(key string) string { return key }
	if s, ok := a.session.(store.SpellingSession); ok {
		spell = s.Spell
	}
	for _, change := range []func(string) string{
		strings.ToUpper, func(id string) string { return id + " " }, func(id string) string { return "{" + id + "}" },
		func(id string) string { return strings.ReplaceAll(id, "-", "") }, func(id string) string { return "urn:uuid:" + id },
	} {
		digits := hex.EncodeToString([]byte(random(16)))
		id := "abc" + digits[3:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:32]
		other := change(id)
		same := spell(id) == spell(other)
		if spell(spell(other)) != spell(other) {
			w.Errorf("Spell of %q: got %q, want what stands for itself", spell(other), spell(spell(other)))
		}
		r, q := w.request(), w.try()
		r.Key, q.Key = id, other
		h := a.hold(r)
		if reply := b.acquire(q); (reply.Status == store.Granted) == same {
			w.Errorf("Acquire of %q while %q is held: got status %d, and that Spell makes them one is %v", other, id, reply.Status, same)
		} else if !same {
			holding{b, q, reply.Grant, time.Now()}.release()
		}
		h.release()
	}
}

func hostileQueues(w *world) {
	a, b := w.join(), w.join()
	for _, key := range w.hostileNames() {
		r := w.request()
		r.Key = key
		h := a.hold(r)
		r = w.request()
		r.Key = key
		q := b.wait(r)
		if q.reply.Rank != 0 {
			w.Errorf("Rank in the queue of %q: got %d, want 0", key, q.reply.Rank)
		}
		h.release()
		q.granted().release()
	}
}
