// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// mostServed is how many waiters one step grants a key that they share, or lets go.
const mostServed = 64

// fits reports whether an owner may have the share now, beside those who hold the key.
func (k *lock) fits(share store.Share) bool {
	if !k.held() {
		return true
	}
	mode := k.mode()
	return mode != store.Exclusive && mode == share.Mode &&
		(mode == store.Shared || k.used()+int(share.Weight) <= int(k.inForce(share)))
}

// heldWhole reports whether somebody has all of the key, so that nobody's turn comes.
func (k *lock) heldWhole() bool { return k.held() && k.mode() == store.Exclusive }

// mode returns how the key is held; Exclusive if it is free.
func (k *lock) mode() store.Mode {
	if !k.held() {
		return store.Exclusive
	}
	return k.holders[0].share.Mode
}

// used returns how many permits are out.
func (k *lock) used() (sum int) {
	for _, h := range k.holders {
		sum += int(h.share.Weight)
	}
	return sum
}

// usedBeside returns how many permits are out, for the reply to who requests some.
func (k *lock) usedBeside(share store.Share) int {
	if share.Mode != store.Permits {
		return 0
	}
	return k.used()
}

// extra returns how many more permits than its weight a request gets.
func (k *lock) extra(w *waiter) int32 {
	if w.Share.Mode != store.Permits || len(k.queue) > 0 {
		return 0
	}
	return min(w.Extra, k.inForce(w.Share)-int32(k.used())-w.Share.Weight)
}

// fence returns the token that readers have in common: that of the first of them.
func (k *lock) fence(mine int64) int64 {
	if k.held() {
		return k.holders[0].grant.Fence
	}
	return mine
}

// shown returns the token that others see.
func (h *holding) shown() int64 {
	if h.share.Mode == store.Shared {
		return h.grant.Fence
	}
	return h.token
}

// token returns the token that others see.
func (k *lock) token() (largest int64) {
	for i := range k.holders {
		largest = max(largest, k.holders[i].shown())
	}
	return largest
}

// description says who has the key.
func (k *lock) description() string {
	switch {
	case !k.held():
		return ""
	case len(k.holders) == 1:
		return k.holders[0].description
	case k.holders[0].share.Mode == store.Shared:
		return fmt.Sprintf("%d readers", len(k.holders))
	}
	return fmt.Sprintf("%d holders of %d permits", len(k.holders), k.used())
}

// remaining returns how long it takes until who requests the share may have it, if nobody renews or
// releases. Permits may become free with the first holding that ends.
func (k *lock) remaining(share store.Share, now time.Time) time.Duration {
	if !k.held() {
		return 0
	}
	at := k.holders[0].until
	for _, h := range k.holders {
		if h.until.Before(at) == (share.Mode == store.Permits) {
			at = h.until
		}
	}
	return at.Sub(now)
}

// shrink makes the permits of a holding fewer. A larger weight changes nothing.
func (h *holding) shrink(weight int32) (freed int32) {
	if h.share.Mode != store.Permits || weight < 1 || weight >= h.share.Weight {
		return 0
	}
	freed = h.share.Weight - weight
	h.share.Weight = weight
	return freed
}

// keepRest leaves the owner a part of what it has, and returns the numbers of that.
func (t *txn) keepRest(k *lock, h *holding, r *store.ReleaseRequest) (store.Grant, error) {
	switch {
	case r.Rest.Mode == store.Permits && h.share.Mode == store.Permits:
		limit := h.share.Limit
		freed := h.shrink(r.Rest.Weight)
		if freed > 0 && r.HoldBack > 0 {
			kept := holding{description: h.description, token: h.token, share: store.Share{Mode: store.Permits, Weight: freed, Limit: limit}}
			kept.holdBack(t.now.Add(r.HoldBack))
			k.holders = append(k.holders, kept)
		}
		return store.Grant{}, nil
	case r.Rest.Mode == store.Shared && h.share.Mode == store.Exclusive:
		t.raise(r.Token)
		t.counter++
		h.share, h.token = *r.Rest, t.counter
		h.grant = store.Grant{Token: t.counter, Fence: t.counter}
		return h.grant, nil
	case r.Rest.Mode == store.Shared && h.share.Mode == store.Shared:
		return h.grant, nil // it was said before
	}
	return store.Grant{}, fmt.Errorf("%w: the rest is no part of what is held", store.ErrInvalidOption)
}
