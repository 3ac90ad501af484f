// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"

	"github.com/asynclock/asynclock-go/store"
)

var forceCases = []testCase{
	{"force about the holder's token takes the key", tokens, forceAboutHolder},
	{"force about another token changes nothing and says who holds the key", tokens, forceAboutAnother},
	{"force about a token repeated leaves the next holder alone", tokens, forceRepeated},
	{"force goes by the token that a renewal wrote back", tokensOfUse, forceAboutUsedToken},
}

func forceAboutHolder(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	if held, err := b.forceAbout(h.Token); !held || err != nil {
		w.Errorf("Force about the holder's token: got %v, %v, want true", held, err)
	}
	w.wantFree(b, w.key)
	if held, err := b.forceAbout(h.Token); held || err != nil {
		w.Errorf("Force about a token, of a free key: got %v, %v, want false", held, err)
	}
}

func forceAboutAnother(w *world) {
	a, b := w.join(), w.join()
	earlier := a.hold(w.request())
	earlier.release()
	h := a.hold(w.request())
	for _, token := range []int64{earlier.Token, h.Token + h.Reserved + 1, 1 << 62} {
		w.wantRefused(b, token, h)
	}
	if !w.store.Features().FIFO {
		return
	}
	b.wait(w.request())
	w.wantRefused(b, earlier.Token, h)
	if n := b.inspect(w.key).Waiters; n != 1 {
		w.Errorf("Waiters after a Force that was refused: got %d, want 1", n)
	}
}

// wantRefused checks that Force about the token takes nothing from h's owner.
func (w *world) wantRefused(c *client, token int64, h holding) {
	w.Helper()
	before := c.inspect(w.key)
	held, err := c.forceAbout(token)
	var other *store.OtherHolderError
	if !errors.As(err, &other) || held {
		w.Errorf("Force about token %d of a key held with %d: got %v, %v, want an OtherHolderError", token, before.Token, held, err)
	} else if got := other.Info; got.Key != w.key || !got.Held || got.Holder != before.Holder || got.Token != before.Token || got.Waiters != before.Waiters {
		w.Errorf("the holder by the OtherHolderError: got %+v, want %+v", got, before)
	}
	w.wantHeldBy(c, h.req)
	if err := h.c.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long}).Err; err != nil {
		w.Errorf("Renew after a Force that was refused: got %v, want no error", err)
	}
	if after := c.inspect(w.key).Token; after != before.Token {
		w.Errorf("token after a Force that was refused: got %d, want %d as before", after, before.Token)
	}
	if _, told := h.c.findThat(forcedOut(h.req.Owner)); told {
		w.Error("the holder was notified of a Force that was refused")
	}
}

// forceRepeated repeats a Force whose reply was lost, after the next holder has come.
func forceRepeated(w *world) {
	a, b, c := w.join(), w.join(), w.join()
	first := a.hold(w.request())
	var second holding
	if w.store.Features().FIFO {
		q := b.wait(w.request())
		_, _ = c.forceAbout(first.Token)
		second = q.granted()
	} else {
		_, _ = c.forceAbout(first.Token)
		second = b.hold(w.request())
	}
	w.wantRefused(c, first.Token, second)
}

func forceAboutUsedToken(w *world) {
	a, b := w.join(), w.join()
	h := a.hold(w.request())
	used := h.Token + 1
	if err := a.renew(store.RenewRequest{Key: w.key, Owner: h.req.Owner, TTL: long, Token: used}).Err; err != nil {
		w.Fatalf("Renew: got %v, want no error", err)
	}
	w.wantRefused(b, h.Token, h)
	if held, err := b.forceAbout(used); !held || err != nil {
		w.Errorf("Force about the token that was written back: got %v, %v, want true", held, err)
	}
	w.wantFree(b, w.key)
}

// forceAbout takes the case's key from the holding with that token.
func (c *client) forceAbout(token int64) (bool, error) {
	ctx, cancel := c.call()
	defer cancel()
	return c.session.Force(ctx, c.w.key, token)
}
