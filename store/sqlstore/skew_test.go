// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// Clocks are compared by who reads the answer to a renewal.
func TestALogHandlerThatBlocksHoldsUpNoAnswer(t *testing.T) {
	t.Parallel()
	h := kit.NewStuck(t)
	w := skewWatch{bound: time.Second, log: asynclog.New(h.Logger())}
	now := time.Now()
	kit.Returns(t, "observe", func() { w.observe(now.Add(-time.Hour), now, now) })
	h.WantAsked(t)
	h.Free()
	w.log.Close()
}
