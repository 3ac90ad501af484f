// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/asynclock/asynclock-go/store"
)

// holder says who holds the key, and how it gets free before its holder is ready, unless it passes on anyway.
func (w *wait) holder(info *store.Info, c *change) {
	var fact string
	switch info.Mode {
	case store.Shared:
		fact = "readers hold it together: " + described(info)
	case store.Permits:
		fact = fmt.Sprintf("%d of %d permits are out: %s", info.Used, info.Limit, described(info))
	default:
		fact = "held by " + described(info)
	}
	if info.Token > 0 {
		fact += fmt.Sprintf(", token %d", info.Token)
	}
	if info.Remaining >= 0 {
		fact += fmt.Sprintf(", %s of its TTL left", short(info.Remaining))
	}
	if info.Waiters == 0 {
		w.report("holder", OK, fact, "")
		return
	}
	fix := ""
	if !c.passed || info.Mode != store.Exclusive {
		fix = w.ending(info)
	}
	w.report("holder", Note, fact, fix)
}

// ending says how the key gets free before its holder is ready.
func (w *wait) ending(info *store.Info) string {
	if info.Mode == store.Permits {
		return fmt.Sprintf("if they have to be more: %spermits %s N", command, quoted(w.key))
	}
	if info.Mode == store.Shared {
		return "if they must not go on, end their processes; or take the key from all of them: " + w.unlock(info)
	}
	return "if it must not go on, end its process; or take the key from it: " + w.unlock(info)
}

// unlock is the command that takes the key from its holder, and from no other unless the holder has no token.
func (w *wait) unlock(info *store.Info) string {
	return fmt.Sprintf("%sunlock %s --force --token %d", command, quoted(w.key), info.Token)
}

// described returns the descriptions of the first holders.
func described(info *store.Info) string {
	if len(info.Holders) == 0 {
		return strconv.Quote(info.Holder)
	}
	var names []string
	for _, h := range info.Holders {
		if len(names) == mostNamed {
			names = append(names, "…")
			break
		}
		name := strconv.Quote(h.Holder)
		if h.Weight > 1 {
			name += fmt.Sprintf(" (%d)", h.Weight)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

const (
	unrenewed     = "the holder stands still, is dead or cut off, or does not renew"
	lookAtProcess = "look at the process: if it runs on, it may write as if it held the key, which only a fence refuses; the key needs no help. " +
		"A holder in Java does not renew, nor one near its maximum hold, nor one that is done and holds the key back for a minimum"
)

// renewals says what the holder did meanwhile.
func (w *wait) renewals(before *store.Info, c *change) {
	switch in := short(c.elapsed); {
	case c.expired:
		w.report("renewals", Warn, "its TTL was over within "+in+": "+unrenewed, lookAtProcess)
	case c.passed && !c.after.Held:
		w.report("renewals", Note, "it got free within "+in+", so the wait moves on", "")
	case c.passes > 1 && before.Mode == store.Exclusive:
		w.report("renewals", Note, fmt.Sprintf("it changed hands at least %d times within %s, so the wait moves on, and many want it", c.passes, in), "")
	case c.passed && before.Mode == store.Exclusive && c.after.Token > 0:
		w.report("renewals", Note, fmt.Sprintf("it changed hands within %s, from token %d to %d, so the wait moves on", in, before.Token, c.after.Token), "")
	case c.passed && before.Mode == store.Exclusive:
		w.report("renewals", Note, "it changed hands within "+in+", so the wait moves on", "")
	case c.passed:
		w.report("renewals", Note, "its holders changed within "+in+"; those that stay may be dead", "")
	case c.renewed:
		fact := "the holder is alive: it renewed the key within " + in
		if before.Mode != store.Exclusive {
			fact = "a holder is alive: it renewed its share within " + in + "; others may be dead"
		}
		w.report("renewals", Note, fact, "")
	case before.Remaining < 0 && w.st.Features().Sessions:
		w.report("renewals", Note, "the server counts no TTLs: the key is free when the session of its holder ends", "")
	case before.Remaining < 0:
		w.report("renewals", Warn, "it is held without a TTL, so nothing frees it if its holder is dead", w.unlock(before))
	case c.elapsed >= dueIn(before):
		verdict := Warn
		if c.after.Waiters == 0 {
			verdict = Note
		}
		w.report("renewals", verdict, "no renewal within "+in+", although one was due: "+unrenewed+"; the key is free in "+short(c.after.Remaining), lookAtProcess)
	default:
		w.report("renewals", Note, "no renewal within "+in+" yet, which proves nothing; if the holder is dead, the key is free in "+short(c.after.Remaining),
			"wait for so long; if the key is still held by the same token then, its holder is alive")
	}
}

// heldByNobody says what a queue without a holder came to.
func (w *wait) heldByNobody(c *change) {
	switch in := short(c.elapsed); {
	case c.after.Held:
		w.report("key", Note, "nobody held it, and "+strconv.Quote(c.after.Holder)+" got it within "+in+", so the wait moves on", "")
	case c.after.Waiters == 0:
		w.report("key", OK, "nobody holds it, and those who waited left within "+in, "")
	default:
		w.report("key", Note, "nobody holds it although some wait: the first may be dead, or the server grants nothing",
			"wait: a dead waiter is passed over when its time is up")
	}
}

// queue says who waits.
func (w *wait) queue(info *store.Info) {
	if info.Waiters == 0 {
		return
	}
	fact := count(info.Waiters, "waits", "wait")
	if len(info.Queue) > 0 {
		fact += fmt.Sprintf("; the first is %s, for %s", strconv.Quote(info.Queue[0].Holder), short(info.Queue[0].Age))
	}
	fix := ""
	if info.Mode == store.Permits && info.Used < info.Limit && len(info.Queue) > 0 {
		fact += fmt.Sprintf(", which requests more permits than the %d that are free", info.Limit-info.Used)
		fix = "the others wait behind it, so that it does not starve"
	}
	w.report("queue", Note, fact, fix)
}
