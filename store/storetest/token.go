// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
)

var tokenCases = []testCase{
	{"tokens rise through release, expiry and force", tokens, tokensRise},
	{"tokens rise over what the holder wrote back", tokensOfUse, tokensRiseOverUsed},
	{"inspect shows the token that a renewal wrote back", tokensOfUse, inspectShowsUsedToken},
	{"acquire sent again after tokens were written back gives one of the holder's own", tokens, acquireAgainAfterUse},
	{"the mark of a waiting reply divides old grants from new ones", queuesAndTokens, markDivides},
}

// aheadOfTime is how far the tokens that a case writes back exceed the granted ones. It is more
// than a clock in microseconds advances while a case runs.
const aheadOfTime = int64(10 * time.Minute / time.Microsecond)

func tokensRise(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	next := func(how string, c *client, r store.AcquireRequest) {
		w.Helper()
		used := h.lastToken()
		again := c.hold(r)
		if again.Token <= used {
			w.Errorf("token after %s: got %d, want more than %d", how, again.Token, used)
		}
		h = again
	}
	if h.Token <= 0 || h.Reserved < 0 {
		w.Errorf("grant: got First %d and Spare %d, want the former positive and the latter not negative", h.Token, h.Reserved)
	}
	h.release()
	next("a release", a, w.request())
	h.release()
	r := w.request()
	r.TTL = short
	next("a release to another client", b, r)
	expired()
	next("expiry", a, w.request())
	b.force(w.key)
	next("force", b, w.request())
}

func tokensRiseOverUsed(w *world) {
	a := w.join()
	h := a.hold(w.request())
	used := h.Token + h.Reserved + aheadOfTime
	if err := a.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: used}).Err; err != nil {
		w.Fatalf("Renew: got %v, want no error", err)
	}
	// The release names a smaller token, as if it had been sent before.
	h.release()
	h = a.hold(w.request())
	if h.Token <= used {
		w.Errorf("token after a renewal that wrote back %d: got %d, want more", used, h.Token)
	}
	used = h.Token + h.Reserved + aheadOfTime
	a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: used})
	h = a.hold(w.request())
	if h.Token <= used {
		w.Errorf("token after a release that wrote back %d: got %d, want more", used, h.Token)
	}
	used = h.Token + h.Reserved + aheadOfTime
	a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: used, HoldBack: short})
	h = a.next(w.request())
	if h.Token <= used {
		w.Errorf("token after a release with Keep that wrote back %d: got %d, want more", used, h.Token)
	}
	if !w.store.Features().FIFO {
		return
	}
	q := w.join().wait(w.request())
	used = h.Token + h.Reserved + aheadOfTime
	a.release(store.ReleaseRequest{Key: w.key, Owner: h.req.Owner, Token: used})
	if got := q.granted().Token; got <= used {
		w.Errorf("token handed on by a release that wrote back %d: got %d, want more", used, got)
	}
}

func inspectShowsUsedToken(w *world) {
	a := w.join()
	h := a.hold(w.request())
	if got := a.inspect(w.key).Token; got != h.Token {
		w.Errorf("Token: got %d, want %d as granted", got, h.Token)
	}
	used := h.Token + 1
	a.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: used})
	if got := a.inspect(w.key).Token; got != used {
		w.Errorf("Token after a renewal: got %d, want %d as written back", got, used)
	}
}

// acquireAgainAfterUse: a store may know only the last used one of a holding's tokens. A client
// recognizes the last one, the first one, and each one between them as its own.
func acquireAgainAfterUse(w *world) {
	a := w.join()
	h := a.hold(w.request())
	last, end := h.Token, h.Token+h.Reserved // the last one used, and the last one set aside
	for _, used := range []int64{h.Token + 1, h.Token + 3, h.Token + h.Reserved, h.Token + h.Reserved + aheadOfTime} {
		if err := a.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: used}).Err; err != nil {
			w.Fatalf("Renew: got %v, want no error", err)
		}
		last = max(last, used)
		again := a.acquire(h.req)
		w.wantStatus("Acquire by the holder", again, store.Granted)
		if again.Token < h.Token || again.Token > last {
			w.Errorf("token of a repeated Acquire after %d: got %d, want one from %d to that", last, again.Token, h.Token)
		}
		if got := again.Token + again.Reserved; again.Reserved < 0 || got > max(end, again.Token) {
			w.Errorf("spare tokens of a repeated Acquire: got %d after %d, want none after %d", again.Reserved, again.Token, end)
		}
	}
}

func markDivides(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	h := a.hold(w.request())
	q := b.wait(w.request())
	for range 3 {
		if got := q.reply.Mark; got != 0 && got < h.Token { // 0: no message grants a key
			w.Errorf("Mark: got %d, want at least %d, the token of the present holder", got, h.Token)
		}
		next := c.wait(w.request())
		h.release()
		h = q.granted() // checks that its token is above the Mark
		a, b, c = b, c, a
		q = next
		q.heartbeat()
	}
}
