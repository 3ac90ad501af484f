// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// noisyReaders call so many scripts when some of them leave.
type noisyReaders struct {
	client rueidis.Client
	calls  int
}

func (noisyReaders) take(context.Context, int, int) error { return nil }

func (r noisyReaders) give(ctx context.Context, _, _ int) error {
	for range r.calls {
		if err := r.client.Do(ctx, r.client.B().Eval().Script("return 1").Numkeys(0).Build()).Error(); err != nil {
			return err
		}
	}
	return nil
}

// The cost of a release is no figure if other scripts ran at the same time.
func TestReleasesAmongOtherScriptsAreNoFigure(t *testing.T) {
	client, err := rueidis.NewClient(rueidis.MustParseURL(kit.Require(t, "ASYNCLOCK_REDIS_URL")))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := releaseTime(t.Context(), client, noisyReaders{client, released + 1}, few); err == nil {
		t.Error("got a figure of more calls than releases")
	}
}
