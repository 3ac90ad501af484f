// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// An asking is what a caller may ask for.
type asking struct {
	name    string
	changes []with
}

func (k asking) String() string { return k.name }

var kindsOf = map[store.Mode][]asking{
	store.Exclusive: {
		{"lock", nil},
		{"lock", nil},
		{"lock", nil},
		{"lock", nil},
		{"future", []with{future}},
		{"try", []with{try}},
		{"future try", []with{future, try}},
		{"other terms", []with{holder("other")}},
		{"retention", []with{retention(time.Minute)}},
		{"no renewal", []with{noRenewal}},
		{"maximum hold", []with{maxHold(3 * time.Second)}},
		{"minimum hold", []with{minHold(2 * time.Second)}},
		{"short queue", []with{limit(1)}},
		{"future of one context", []with{future, under(nil), limit(2)}},
		{"future of one context", []with{future, under(nil), limit(2)}},
		{"future of another", []with{future, limit(2)}},
		{"future with a maximum hold", []with{future, maxHold(3 * time.Second)}},
		{"future without renewal", []with{future, noRenewal}},
		{"future with retention", []with{future, retention(time.Minute)}},
	},
	store.Shared: {
		{"reader", []with{reader}},
		{"future", []with{reader, future}},
		{"future", []with{reader, future}},
		{"future of one context", []with{reader, future, under(nil)}},
		{"try", []with{reader, try}},
		{"future try", []with{reader, future, try}},
		{"future try with a maximum hold", []with{reader, future, try, maxHold(3 * time.Second)}},
		{"try without renewal", []with{reader, try, noRenewal}},
		{"other terms", []with{reader, holder("other")}},
		{"future on other terms", []with{reader, future, holder("other")}},
		{"retention", []with{reader, retention(time.Minute)}},
		{"maximum hold", []with{reader, maxHold(3 * time.Second)}},
		{"future with a maximum hold", []with{reader, future, maxHold(3 * time.Second)}},
		{"future with a maximum hold", []with{reader, future, maxHold(3 * time.Second)}},
		{"no renewal", []with{reader, noRenewal}},
		{"future without renewal", []with{reader, future, noRenewal}},
		{"writer", nil},
		{"writing future", []with{future}},
	},
	store.Permits: {
		{"permit", []with{permits(1)}},
		{"two permits", []with{permits(2)}},
		{"future", []with{permits(1), future}},
		{"future", []with{permits(1), future}},
		{"future of one context", []with{permits(1), future, under(nil)}},
		{"future of two permits", []with{permits(2), future}},
		{"try", []with{permits(1), try}},
		{"future try", []with{permits(2), future, try}},
		{"other terms", []with{permits(1), holder("other")}},
		{"future on other terms", []with{permits(1), future, holder("other")}},
		{"no renewal", []with{permits(1), noRenewal}},
		{"maximum hold", []with{permits(1), maxHold(3 * time.Second)}},
		{"minimum hold", []with{permits(1), minHold(time.Second)}},
		{"try with a minimum hold", []with{permits(1), try, minHold(time.Second)}},
		{"future with a minimum hold", []with{permits(1), future, minHold(time.Second)}},
		{"future with a maximum hold", []with{permits(1), future, maxHold(3 * time.Second)}},
		{"future without renewal", []with{permits(1), future, noRenewal}},
		{"retention", []with{permits(1), retention(time.Minute)}},
		{"both", []with{permits(2), minHold(time.Second), maxHold(500 * ms)}},
	},
}
