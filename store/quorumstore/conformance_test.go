// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/quorumstore"
	"github.com/asynclock/asynclock-go/store/storetest"
)

func TestMain(m *testing.M) {
	kit.InParallel(16) // what runs in real time waits for TTLs
	goleak.VerifyTestMain(m, redistest.Leftover()...)
}

// over returns a quorum of stores, named by their place.
func over(t *testing.T, stores ...store.Store) *quorumstore.Store {
	t.Helper()
	var nodes []quorumstore.Node
	for i, s := range stores {
		nodes = append(nodes, quorumstore.Node{Name: fmt.Sprint("node-", i), Store: s})
	}
	quorum, err := quorumstore.New(nodes...)
	if err != nil {
		t.Fatalf("New: got %v, want a store", err)
	}
	return quorum
}

// ofThree is a quorum in memory.
func ofThree(t *testing.T) store.Store {
	t.Helper()
	return over(t, memstore.New(), memstore.New(), memstore.New())
}

func ofFive(t *testing.T) store.Store {
	t.Helper()
	return over(t, memstore.New(), memstore.New(), memstore.New(), memstore.New(), memstore.New())
}

func TestConformanceInABubble(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) store.Store{"three": ofThree, "five": ofFive} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, open, storetest.InBubble())
		})
	}
}

func TestAStoreThatIsOnlyDeclaredIsRefused(t *testing.T) {
	t.Parallel()
	storetest.Zero(t, new(quorumstore.Store))
}
