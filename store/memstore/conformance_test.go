// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/storetest"
)

func TestMain(m *testing.M) {
	kit.InParallel(16) // what runs in real time waits for TTLs
	goleak.VerifyTestMain(m)
}

func open(*testing.T) store.Store { return memstore.New() }

func TestConformanceInABubble(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open, storetest.InBubble())
}

func TestConformanceInRealTime(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open)
}
