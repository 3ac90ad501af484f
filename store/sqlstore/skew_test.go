// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/notes"
	"github.com/asynclock/asynclock-go/internal/notes/notestest"
)

// Clocks are compared by who reads the answer to a renewal.
func TestALogHandlerThatBlocksHoldsUpNoAnswer(t *testing.T) {
	t.Parallel()
	h := notestest.NewStuck(t)
	w := skewWatch{bound: time.Second, log: notes.New(h.Logger())}
	now := time.Now()
	notestest.Returns(t, "observe", func() { w.observe(now.Add(-time.Hour), now, now) })
	h.WantAsked(t)
	h.Free()
	w.log.Close()
}
