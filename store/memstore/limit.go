// SPDX-License-Identifier: Apache-2.0

package memstore

import (
	"context"

	"github.com/asynclock/asynclock-go/store"
)

// SetLimit stores how many permits a key has. Such a key takes memory until the limit is forgotten.
func (c *session) SetLimit(ctx context.Context, key string, limit int32) error {
	if err := features.CheckLimit(limit); err != nil {
		return err
	}
	return c.take(ctx, func(t *txn) {
		k := t.find(key)
		defer t.keep(k)
		k.limit = limit
		t.tellLimit(k)
		t.serve(k, "")
	})
}

// tellLimit asks those who have permits to renew, so that they learn the limit.
func (t *txn) tellLimit(k *lock) {
	for _, h := range k.holders {
		if h.share.Mode == store.Permits && h.owner != "" {
			t.notify(h.session, store.Event{Kind: store.EventWake, Owner: h.owner})
		}
	}
}

// inForce returns how many permits there are for who requests the share, or has it: as many as are
// stored, or otherwise the smallest number that it or a holder counts on. It is 0 for other shares.
func (k *lock) inForce(share store.Share) int32 {
	switch {
	case share.Mode != store.Permits:
		return 0
	case k.limit > 0:
		return k.limit
	}
	least := share.Limit
	for _, h := range k.holders {
		if h.share.Mode == store.Permits {
			least = min(least, h.share.Limit)
		}
	}
	return least
}

// tooMuch reports whether a request can't be granted even if nobody else has permits.
func (k *lock) tooMuch(share store.Share) bool {
	return share.Mode == store.Permits && k.limit > 0 && share.Weight > k.limit
}
