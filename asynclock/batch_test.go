// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

// A store that lost its way may still read the first batch when the release is repeated.
func TestRepeatedReleaseHasABatchOfItsOwn(t *testing.T) {
	story(t, func(w *world) {
		var batches, copies [][]store.ReleaseRequest
		st := altered{Store: w.store, release: func(_ context.Context, batch []store.ReleaseRequest) error {
			batches, copies = append(batches, batch), append(copies, slices.Clone(batch))
			if len(batches) == 1 {
				return asynclock.ErrOutcomeUnknown
			}
			return nil
		}}
		unlock(w, lock(w, w.clientOf(st), "key", asynclock.WithMinHold(10*time.Second)))
		if len(batches) != 2 || !copies[0][0].Clean || copies[1][0].Clean || copies[0][0].HoldBack == copies[1][0].HoldBack {
			w.Fatalf("got releases %+v, want two that differ", copies)
		}
		if !reflect.DeepEqual(batches, copies) {
			w.Errorf("the batches became %+v, want them left as %+v", batches, copies)
		}
	})
}
