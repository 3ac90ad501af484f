// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// importer stands for a program's own code.
type importer struct{ locks *asynclock.Client }

func (i importer) run(ctx context.Context) error {
	return i.locks.WithLock(ctx, "import", func(ctx context.Context, _ *asynclock.Lease) error {
		select {
		case <-time.After(time.Hour): // its work
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, asynclock.WithMaxHold(10*time.Minute))
}

func TestImportGivesUpAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks, err := asynclock.New(memstore.New())
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close(t.Context())
		began := time.Now()
		err = importer{locks}.run(t.Context()) // takes no real time
		if took := time.Since(began); !errors.Is(err, asynclock.ErrMaxHold) || took > 10*time.Minute {
			t.Errorf("got %v after %v, want ErrMaxHold after 10 minutes at most", err, took)
		}
	})
}
