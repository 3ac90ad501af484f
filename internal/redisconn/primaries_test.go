// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit/fuzzreply"
	"github.com/asynclock/asynclock-go/store"
)

// rueidis' cluster client puts off looking at the topology again, by 1 s, asleep, even if
// it is closed meanwhile.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// A fakeNode answers as a Cluster's node would: with its role, and with the primaries
// that it knows, each with a slot.
type fakeNode struct {
	*miniredis.Miniredis

	host  string
	port  int
	role  atomic.Value // string; empty: refused
	knows atomic.Value // []*fakeNode; none: refused
}

func newFakeNode(t *testing.T) *fakeNode {
	t.Helper()
	n := &fakeNode{Miniredis: miniredis.RunT(t)}
	n.host, n.port = n.Host(), n.Server().Addr().Port // not to be had once it is closed
	n.role.Store("master")
	n.knows.Store([]*fakeNode{})
	n.Server().SetPreHook(func(c *server.Peer, command string, args ...string) bool {
		role, knows := n.role.Load().(string), n.knows.Load().([]*fakeNode)
		switch asked := strings.ToUpper(command + " " + strings.Join(args, " ")); {
		case command == "ROLE" && role != "":
			c.WriteLen(1)
			c.WriteBulk(role)
		case asked == "CLUSTER SLOTS" && len(knows) > 0:
			c.WriteLen(len(knows))
			for slot, master := range knows {
				c.WriteLen(3)
				c.WriteInt(slot)
				c.WriteInt(slot)
				c.WriteLen(2)
				c.WriteBulk(master.host)
				c.WriteInt(master.port)
			}
		case asked == "CLUSTER SHARDS" && len(knows) > 0: // by which rueidis gets to know the nodes
			c.WriteLen(len(knows))
			for slot, master := range knows {
				c.WriteMapLen(2)
				c.WriteBulk("slots")
				c.WriteLen(2)
				c.WriteInt(slot)
				c.WriteInt(slot)
				c.WriteBulk("nodes")
				c.WriteLen(1)
				c.WriteMapLen(4)
				c.WriteBulk("endpoint")
				c.WriteBulk(master.host)
				c.WriteBulk("port")
				c.WriteInt(master.port)
				c.WriteBulk("role")
				c.WriteBulk("master")
				c.WriteBulk("health")
				c.WriteBulk("online")
			}
		case command == "ROLE" || command == "CLUSTER":
			c.WriteError("NOPERM this user has no permissions")
		default:
			return false
		}
		return true
	})
	return n
}

// twoNodes returns a Cluster of two primaries that know each other, and a client of it.
func twoNodes(t *testing.T) (client rueidis.Client, a, b *fakeNode) {
	t.Helper()
	a, b = newFakeNode(t), newFakeNode(t)
	a.knows.Store([]*fakeNode{a, b})
	b.knows.Store([]*fakeNode{a, b})
	var err error
	for range 5 { // a busy machine may take longer than a client waits
		if client, err = rueidis.NewClient(ForLocks(rueidis.ClientOption{InitAddress: []string{a.Addr()}})); err == nil {
			t.Cleanup(client.Close)
			return client, a, b
		}
	}
	t.Fatal(err)
	return nil, nil, nil
}

func TestPrimaries(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(a, b, stranger *fakeNode)
		want     int
		complete bool
	}{
		"all are up":            {func(_, _, _ *fakeNode) {}, 2, true},
		"a replica is left out": {func(a, b, _ *fakeNode) { b.role.Store("slave"); a.knows.Store([]*fakeNode{a}) }, 1, true},
		"a replica is down":     {func(a, b, _ *fakeNode) { a.knows.Store([]*fakeNode{a}); b.Close() }, 1, true},
		"a primary is down":     {func(_, b, _ *fakeNode) { b.Close() }, 1, false},
		"a primary is not known": {func(a, b, stranger *fakeNode) {
			a.knows.Store([]*fakeNode{a, stranger})
			b.knows.Store([]*fakeNode{a, stranger})
		}, 2, false},
		"a primary says it is a replica":    {func(_, b, _ *fakeNode) { b.role.Store("slave") }, 1, false},
		"roles are refused":                 {func(a, b, _ *fakeNode) { a.role.Store(""); b.role.Store("") }, 2, true},
		"slots are refused":                 {func(a, b, _ *fakeNode) { a.knows.Store([]*fakeNode{}); b.knows.Store([]*fakeNode{}) }, 2, true},
		"slots are refused, a node is down": {func(a, b, _ *fakeNode) { a.knows.Store([]*fakeNode{}); b.Close() }, 1, false},
		"all are down":                      {func(a, b, _ *fakeNode) { a.Close(); b.Close() }, 0, false},
		"all say they are replicas":         {func(a, b, _ *fakeNode) { a.role.Store("slave"); b.role.Store("slave") }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, a, b := twoNodes(t)
			if got := len(client.Nodes()); got != 2 {
				t.Fatalf("nodes: got %d, want 2", got)
			}
			tt.change(a, b, newFakeNode(t))
			conn, err := Share(client)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Primaries(t.Context(), conn)
			if len(got) != tt.want || (err == nil) != tt.complete {
				t.Errorf("got %d primaries, error %v; want %d and that to be all: %v", len(got), err, tt.want, tt.complete)
			}
			if means := Classify(err); err != nil && !errors.Is(means, store.ErrUnreachable) && !errors.Is(means, store.ErrOutcomeUnknown) {
				t.Errorf("error: got %v, want it to be of a server that can't be reached", means)
			}
		})
	}
}

// FuzzMasters: whatever is answered to CLUSTER SLOTS is a list of addresses or an error.
func FuzzMasters(f *testing.F) {
	f.Add([]byte("l\x01l\x03i\x00i\x05l\x02t\x091.2.3.4.5i\x07"))
	f.Add([]byte("l\x01l\x03i\x00i\x05l\x02t\x00i\x07"))
	f.Add([]byte("l\x01l\x02i\x00i\x05"))
	f.Add([]byte("i\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := fuzzreply.Message(data)
		if err != nil {
			t.Fatal(err)
		}
		masters, err := mastersOf(m, "127.0.0.1:6379")
		if err != nil && len(masters) > 0 {
			t.Errorf("got %q beside %v, want nothing", masters, err)
		}
		if slices.Contains(masters, "") {
			t.Errorf("got %q, want no empty address", masters)
		}
	})
}

// Where a node knows no name for itself, it is the one that answers.
func TestMastersOfANodeWithoutAName(t *testing.T) {
	m, err := fuzzreply.Message([]byte("l\x02l\x03i\x00i\x05l\x02t\x00i\x07l\x03i\x06i\x07l\x02ni\x07"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := mastersOf(m, "[::1]:6379"); err != nil || !slices.Equal(got, []string{"[::1]:7"}) {
		t.Errorf("got %q, %v; want [::1]:7", got, err)
	}
}
