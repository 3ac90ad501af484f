// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"testing"

	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// Memory has one store for all clients, for there is nothing else to share.
var Memory = Store{"memstore", Queues | Notified, func(*testing.T) func(*testing.T) *Env { return openMemory }}

func openMemory(t *testing.T) *Env {
	t.Helper()
	env := NewEnv(t)
	st := memstore.New()
	env.Connect = func(c *faultconn.Line) store.Store {
		line := asynclocktest.Wrap(st)
		c.OnCut = func() {
			line.Every(asynclocktest.Any, asynclocktest.Hang)
			line.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
		}
		return line
	}
	t.Cleanup(func() { WantNothingListed(t, st) })
	return env
}
