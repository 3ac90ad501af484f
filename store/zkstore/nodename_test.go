// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

// nodeNames are the names of nodes.
func nodeNames(nodes []node) (names []string) {
	for _, n := range nodes {
		names = append(names, n.name)
	}
	return names
}

// Curator orders by the text after the last "lock-", whoever made the nodes.
func TestNodesOfAllProgramsHaveOneOrder(t *testing.T) {
	nodes, err := inOrder([]string{
		"_c_0000-lock-0000000007", "nested key", "_c_ffff-lock-0000000003", "lock-0000000005", "lock-", "block-a", "block-42", "lock-1", "lock-999999999",
	})
	want := []string{"_c_ffff-lock-0000000003", "lock-0000000005", "_c_0000-lock-0000000007"}
	if err != nil || !slices.Equal(nodeNames(nodes), want) {
		t.Errorf("got %q, %v, want %q", nodes, err, want)
	}
}

// And those of readers and writers by the text after either mark. A writer of Curator's that also reads
// has two nodes with one number.
func TestReadersAndWritersHaveOneOrder(t *testing.T) {
	nodes, err := inOrder([]string{
		"_c_0000-__READ__0000000007", "__WRIT__", "__READ__12", "_c_ffff-__WRIT__0000000003", "_c_aaaa-__READ__0000000003", "_c_8888-__READ__0000000001",
	})
	want := []string{"_c_8888-__READ__0000000001", "_c_ffff-__WRIT__0000000003", "_c_aaaa-__READ__0000000003", "_c_0000-__READ__0000000007"}
	if err != nil || !slices.Equal(nodeNames(nodes), want) {
		t.Errorf("got %q, %v, want %q", nodes, err, want)
	}
}

// Past 2147483647 the server's numbers are negative, and their order is none.
func TestNumbersThatOverflowAreRefused(t *testing.T) {
	for _, name := range []string{"_c_a-lock--2147483648", "lock-12345678901", "lock--000000001", "__READ__-2147483648"} {
		if _, err := inOrder([]string{"lock-0000000001", name}); !errors.Is(err, store.ErrForeignData) {
			t.Errorf("%q: got %v, want ErrForeignData", name, err)
		}
	}
}

func TestAnOwnerIsNotReadOffItsNode(t *testing.T) {
	owner := "AAAAAAAAAAAAAAAAAAAAAA.3f"
	for k, length := range map[kind]int{mutex: len("lock-"), writer: len("__WRIT__"), reader: len("__READ__")} {
		name := nodePrefix(owner, k)
		if len(name) != len("_c_")+36+len("-")+length || strings.Contains(name, owner[:8]) || name == nodePrefix(owner[1:], k) {
			t.Errorf("got %q, want Curator's form, with nothing of the owner in it", name)
		}
		if got, number := parse(name + "0000000001"); got != k || number != "0000000001" {
			t.Errorf("parse of %q and a number: got kind %d and %q, want %d and the number", name, got, number, k)
		}
	}
}

// The name of a writer that goes on as a reader has what its token is made of. Other names have not.
func TestAWriterIsReadOffItsReader(t *testing.T) {
	owner := "AAAAAAAAAAAAAAAAAAAAAA.3f"
	for _, czxid := range []int64{0, 1, 4095, 4096, 0x12_3456_789a_bcde, maxZxid} {
		name := restPrefix(owner, czxid) + "0000000001"
		if got, ok := writerBefore(name); !ok || got != czxid {
			t.Errorf("writerBefore(%q): got %#x, %v, want %#x", name, got, ok, czxid)
		}
		if len(name) != len(nodePrefix(owner, reader)+"0000000001") || strings.Contains(name, owner[:8]) || name == restPrefix(owner[1:], czxid)+"0000000001" {
			t.Errorf("got %q, want Curator's form, with nothing of the owner in it", name)
		}
	}
	for _, name := range []string{
		nodePrefix(owner, reader) + "0000000001", "_c_x-__READ__0000000001", "__READ__0000000001", "x",
		strings.Replace(restPrefix(owner, 7), "READ", "WRIT", 1) + "0000000001", restPrefix(owner, 7) + "1",
	} {
		if got, ok := writerBefore(name); ok {
			t.Errorf("writerBefore(%q): got %#x, want none", name, got)
		}
	}
}

// FuzzNodes: whatever others call the children of a lock, those that are nodes have
// one order, and ours is among them.
func FuzzNodes(f *testing.F) {
	for _, name := range []string{
		"lock-0000000001", "_c_x-lock-9999999999", "block-5", "lock-00000000010", "x",
		"__READ__0000000005", "_c_x-__WRIT__0000000005", "lock-__READ__0000000005", restPrefix("owner", 7) + "0000000005",
	} {
		f.Add(name)
	}
	ours := nodePrefix("owner", writer) + "0000000005"
	f.Fuzz(func(t *testing.T, name string) {
		nodes, err := inOrder([]string{name, ours})
		if err != nil {
			if !errors.Is(err, store.ErrForeignData) {
				t.Errorf("%q: got %v, want ErrForeignData", name, err)
			}
			return
		}
		if !slices.Contains(nodeNames(nodes), ours) {
			t.Errorf("beside %q: got %q, want ours in it", name, nodes)
		}
		if len(nodes) == 2 && nodes[0].number > nodes[1].number {
			t.Errorf("%q: got %q, want them in order", name, nodes)
		}
		for _, node := range nodes {
			if _, err := node.sequenceNumber(); err != nil {
				t.Errorf("%q: %v", node, err)
			}
			tokenOf(node.name, 1)
		}
	})
}
