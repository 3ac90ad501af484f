// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/storetest"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

// All clients of a case share a session with ZooKeeper.
func TestConformanceInOneSession(t *testing.T) {
	t.Parallel()
	zktest.Servers(t)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, newRoot()) })
}

// Every client has a session of its own, as in processes of their own.
func TestConformanceInManySessions(t *testing.T) {
	t.Parallel()
	on := zktest.Servers(t)
	storetest.Run(t, func(t *testing.T) store.Store { return manySessions{t, on, newRoot(), nil} })
}

// All keys have readers.
func TestConformanceWithReaders(t *testing.T) {
	t.Parallel()
	on := zktest.Servers(t)
	storetest.Run(t, func(t *testing.T) store.Store { return manySessions{t, on, newRoot(), []Option{ofAllKeys}} })
}

func TestConformanceWithReadersInOneSession(t *testing.T) {
	t.Parallel()
	zktest.Servers(t)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, newRoot(), ofAllKeys) })
}

// ofAllKeys gives readers to all keys.
var ofAllKeys = WithReadWriteKeys(func(string) bool { return true })

// A client's writes at one server are visible to clients of another server once that server has
// caught up with the leader. All clients are at followers. At the leader itself a sync waits for
// nothing, and in one of some thousand cases Inspect shows the state of a millisecond before.
func TestConformanceOnAnEnsemble(t *testing.T) {
	t.Parallel()
	_, followers := zktest.Roles(t, zktest.StartEnsemble(t))
	on := []string{followers[0].Addr, followers[1].Addr}
	storetest.Run(t, func(t *testing.T) store.Store { return manySessions{t, on, newRoot(), nil} })
}

type manySessions struct {
	t       *testing.T
	servers []string
	root    string
	options []Option
}

func (m manySessions) Features() store.Features {
	settings, err := newSettings(m.options)
	if err != nil {
		m.t.Fatal(err)
	}
	return (&Store{settings: settings}).Features()
}

func (m manySessions) Open(id string, events func(store.Event)) (store.Session, error) {
	return openOn(m.t, m.servers, m.root, m.options...).Open(id, events)
}
