// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/quorumstore"
)

// lacking is a store without some feature.
type lacking struct {
	store.Store

	features store.Features
}

func (l lacking) Features() store.Features { return l.features }

func TestNodesThatMakeNoQuorumAreRefused(t *testing.T) {
	t.Parallel()
	named := func(names ...string) (nodes []quorumstore.Node) {
		for _, name := range names {
			nodes = append(nodes, quorumstore.Node{Name: name, Store: memstore.New()})
		}
		return nodes
	}
	without := func(change func(*store.Features)) []quorumstore.Node {
		nodes := named("a", "b", "c")
		f := memstore.New().Features()
		change(&f)
		nodes[1].Store = lacking{memstore.New(), f}
		return nodes
	}
	twice := named("a", "b", "c")
	twice[2].Store = twice[0].Store
	missing := named("a", "b", "c")
	missing[1].Store = nil
	for what, nodes := range map[string][]quorumstore.Node{
		"none":            nil,
		"one":             named("a"),
		"two":             named("a", "b"),
		"four":            named("a", "b", "c", "d"),
		"seven":           named("a", "b", "c", "d", "e", "f", "g"),
		"an empty name":   named("a", "", "c"),
		"a long name":     named("a", "b", strings.Repeat("c", 129)),
		"a name twice":    named("a", "b", "a"),
		"a store twice":   twice,
		"no store":        missing,
		"without tokens":  without(func(f *store.Features) { f.Tokens = false }),
		"without a queue": without(func(f *store.Features) { f.FIFO = false }),
		"without TTLs":    without(func(f *store.Features) { f.Sessions = true }),
	} {
		if s, err := quorumstore.New(nodes...); s != nil || !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("New with nodes: %s: got %v, %v; want ErrInvalidOption", what, s, err)
		}
	}
}

func TestWhatTheStoreCannotDoIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	c, err := asynclock.New(ofThree(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	defer c.Close(context.Background())
	if _, err := c.RLock(ctx, "key"); !errors.Is(err, asynclock.ErrUnsupported) {
		t.Errorf("RLock: got %v, want ErrUnsupported", err)
	}
	s, err := c.Semaphore("key", 3)
	if err == nil {
		_, err = s.Acquire(ctx, 1)
	}
	if !errors.Is(err, asynclock.ErrUnsupported) {
		t.Errorf("a semaphore: got %v, want ErrUnsupported", err)
	}
	if _, err := once.Do(ctx, c, "job", time.Minute, func(context.Context, once.Run) error { return nil }); !errors.Is(err, asynclock.ErrUnsupported) {
		t.Errorf("once.Do: got %v, want ErrUnsupported", err)
	}
	if err := elect.Run(ctx, c, "leader", func(context.Context, *elect.Term) error { return elect.ErrResign }); err != nil {
		t.Errorf("elect.Run, which needs no notes: got %v, want a term", err)
	}
	l, err := c.Lock(ctx, "key")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetNote(ctx, []byte("note"), time.Minute); !errors.Is(err, asynclock.ErrUnsupported) {
		t.Errorf("WriteNote: got %v, want ErrUnsupported", err)
	}
	if err := l.Unlock(ctx); err != nil {
		t.Error(err)
	}
}

// TestClientsWithOtherNodesAreFoundOut: a client that meets a holder with other nodes gets no key, and learns why.
func TestClientsWithOtherNodesAreFoundOut(t *testing.T) {
	t.Parallel()
	var stores []store.Store
	for range 6 {
		stores = append(stores, memstore.New())
	}
	node := func(i int) quorumstore.Node { return quorumstore.Node{Name: fmt.Sprint(i), Store: stores[i]} }
	ours := over(t, stores[:3]...)
	for what, theirs := range map[string][]quorumstore.Node{
		"another third node": {node(0), node(1), node(3)},
		"five nodes":         {node(0), node(1), node(2), node(3), node(4)},
		"other names":        {{Name: "x", Store: stores[0]}, {Name: "y", Store: stores[1]}, {Name: "z", Store: stores[2]}},
	} {
		others, err := quorumstore.New(theirs...)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			key := fmt.Sprintf("%s/%d", what, i)
			first, second := client(t, ours), client(t, others)
			lock(t, first, key)
			_, err := second.TryLock(t.Context(), key)
			var set *quorumstore.SetError
			if !errors.Is(err, asynclock.ErrInvalidOption) || !errors.As(err, &set) || set.Holder != "the first" || set.Node == "" {
				t.Errorf("TryLock with %s: got %v, want a SetError about the holder", what, err)
			}
		}
	}
	key := "one server only"
	lock(t, client(t, stores[0]), key)
	lock(t, client(t, stores[1]), key)
	if _, err := client(t, ours).TryLock(t.Context(), key); !errors.As(err, new(*quorumstore.SetError)) {
		t.Errorf("TryLock beside a client of a node: got %v, want a SetError", err)
	}
}

func client(t *testing.T, s store.Store) *asynclock.Client {
	t.Helper()
	c, err := asynclock.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// lock takes a key until the test ends.
func lock(t *testing.T, c *asynclock.Client, key string) *asynclock.Lease {
	t.Helper()
	l, err := c.Lock(t.Context(), key, asynclock.WithDescription("the first"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Unlock(context.Background()) })
	return l
}

func TestARefusalTellsWhoseLeaseItIs(t *testing.T) {
	t.Parallel()
	q := ofThree(t)
	l := lock(t, client(t, q), "key")
	_, err := client(t, q).TryLock(t.Context(), "key")
	var held *asynclock.HeldError
	if !errors.As(err, &held) || held.Holder != "the first" || held.Token != l.Token() {
		t.Errorf("TryLock: got %v, want the holder and token %d", err, l.Token())
	}
}
