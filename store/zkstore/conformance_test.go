// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/storetest"
)

// All clients of a case share a session with ZooKeeper.
func TestConformanceInOneSession(t *testing.T) {
	servers(t)
	storetest.Run(t, func(t *testing.T) asynclock.Store { return open(t, newRoot()) })
}

// Every client has a session of its own, as in processes of their own.
func TestConformanceInManySessions(t *testing.T) {
	servers(t)
	storetest.Run(t, func(t *testing.T) asynclock.Store { return manySessions{t, newRoot()} })
}

type manySessions struct {
	t    *testing.T
	root string
}

func (manySessions) Features() asynclock.Features { return new(Store).Features() }

func (m manySessions) Join(id string, events func(asynclock.Event)) (asynclock.Session, error) {
	return open(m.t, m.root).Join(id, events)
}
