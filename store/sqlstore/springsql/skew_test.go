// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// Clocks are compared while the answer to a renewal is read.
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

// TestSkewIsSaid: by how much clocks differ at least, whenever the server looked at its
// own, once until they have agreed again.
func TestSkewIsSaid(t *testing.T) {
	t.Parallel()
	w := skewWatch{bound: time.Second}
	sent := time.Now()
	received := sent.Add(5 * time.Second) // slow, which is no skew
	for _, step := range []struct {
		server time.Time
		says   bool
	}{
		{sent.Add(-time.Second), false},
		{received.Add(time.Second), false},
		{sent.Add(-1100 * time.Millisecond), true},
		{sent.Add(-3 * time.Second), false},
		{sent, false},
		{received.Add(1100 * time.Millisecond), true},
	} {
		var log kit.Journal
		w.log = asynclog.New(log.Logger(slog.LevelInfo))
		w.observe(step.server, sent, received)
		w.log.Close()
		if got := strings.Contains(log.String(), "clock"); got != step.says {
			t.Errorf("server's clock %v after the request: got warning %v, want %v", step.server.Sub(sent), got, step.says)
		}
	}
}

// TestStoreWatchesTheSkew: with a bound that any two clocks differ by.
func TestStoreWatchesTheSkew(t *testing.T) {
	t.Parallel()
	var log kit.Journal
	st := newTables(t, sqltest.OnPostgres(t), WithSkewWarning(time.Minute), WithLogger(log.Logger(slog.LevelInfo)))
	if st.clocks.far.Load() {
		t.Error("a store whose clock is the server's: got that they differ")
	}
	st.conn.Tables.Observe(time.UnixMicro(1), time.Now(), time.Now())
	st.log.Close()
	if got := strings.Count(log.String(), "clock"); got != 1 {
		t.Errorf("log of a store whose server's clock is of 1970 now: got %q, want one warning", log.String())
	}
}
