// SPDX-License-Identifier: Apache-2.0

package fences

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/asynclock/asynclock-go/fence"
)

// newBucket makes a bucket on a server of the test's.
func newBucket(t *testing.T) plainBucket {
	t.Helper()
	storage := s3mem.New()
	if err := storage.CreateBucket("orders"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(storage).Server())
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return plainBucket{server.URL + "/orders"}
}

func init() {
	kinds["S3"] = kind{
		prepare: func(t *testing.T) string {
			t.Helper()
			return newBucket(t).url
		},
		open: func(_ context.Context, place string) (resource, error) {
			b := plainBucket{place}
			return resource{
				write: func(ctx context.Context, h fence.Holder, value string) error {
					return saveOrder(ctx, b, h, "order", value)
				},
				read: func(ctx context.Context) (string, error) {
					o, _, err := b.get(ctx, "order")
					return o.State, err
				},
				close: http.DefaultClient.CloseIdleConnections,
			}, nil
		},
	}
}

// A sleepy bucket lets another holder write between the sleeper's read and its write.
type sleepy struct {
	plainBucket
	meanwhile func()
}

func (b *sleepy) put(ctx context.Context, name string, o orderObject, etag string) error {
	if b.meanwhile != nil {
		b.meanwhile()
		b.meanwhile = nil
	}
	return b.plainBucket.put(ctx, name, o, etag)
}

// The check and the write are one step: whoever sleeps between them is refused. So it is if the next
// holder has written the state that was there, because the body has the token.
func TestS3RefusesWhoSleepsBetweenCheckAndWrite(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"", "new"} {
		b := newBucket(t)
		if before != "" {
			if err := saveOrder(t.Context(), b, stamp(t, 5), "order", before); err != nil {
				t.Fatal(err)
			}
		}
		late := &sleepy{b, func() {
			if err := saveOrder(t.Context(), b, stamp(t, 7), "order", "new"); err != nil {
				t.Error(err)
			}
		}}
		if err := saveOrder(t.Context(), late, stamp(t, 5), "order", "late"); !errors.Is(err, fence.ErrStale) {
			t.Errorf("after %q: got %v, want ErrStale", before, err)
		}
		if o, _, err := b.get(t.Context(), "order"); err != nil || o != (orderObject{"new", 7}) {
			t.Errorf("after %q: got %v, %v, want that of the next holder", before, o, err)
		}
	}
}
