// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
)

// A keeping store keeps the batches of its releases, and does not answer the first.
type keeping struct {
	forgetful

	batches, copies [][]store.ReleaseRequest
}

func (k *keeping) Open(string, func(store.Event)) (store.Session, error) { return k, nil }

func (k *keeping) Release(ctx context.Context, batch []store.ReleaseRequest) []store.ReleaseReply {
	k.batches, k.copies = append(k.batches, batch), append(k.copies, slices.Clone(batch))
	if len(k.batches) == 1 {
		return []store.ReleaseReply{{Err: asynclock.ErrOutcomeUnknown}}
	}
	return k.forgetful.Release(ctx, batch)
}

// A store that lost its way may still read the first batch when the release is repeated.
func TestRepeatedReleaseHasABatchOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := &keeping{forgetful: forgetful(store.Granted)}
		c, err := asynclock.New(k)
		if err != nil {
			t.Fatal(err)
		}
		defer abandon(c)
		l := lock(t, c, "key", asynclock.WithMinHold(10*time.Second))
		unlock(t, l)
		if len(k.batches) != 2 || !k.copies[0][0].Clean || k.copies[1][0].Clean || k.copies[0][0].HoldBack == k.copies[1][0].HoldBack {
			t.Fatalf("got releases %+v, want two that differ", k.copies)
		}
		if !reflect.DeepEqual(k.batches, k.copies) {
			t.Errorf("the batches became %+v, want them left as %+v", k.batches, k.copies)
		}
	})
}
