// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// A skewWatch compares this machine's clock with the server's. Java compares the times in its
// table with the clock of the client that looks. So two clients whose clocks differ take each
// other's locks too early.
type skewWatch struct {
	bound time.Duration // 0: none
	log   *asynclog.Log

	far atomic.Bool // the last measurement was beyond the bound
}

// observe records a reading of the server's clock. The clock stood at server at some moment
// between the sending of a request and the receipt of its answer.
func (w *skewWatch) observe(server, sent, received time.Time) {
	if w.bound == 0 {
		return
	}
	skew := sqlconn.Ahead(server, sent, received)
	far := skew.Abs() > w.bound
	if w.far.Swap(far) != far && far {
		w.log.Add(slog.LevelWarn, "springsql: this machine's clock and the database server's differ; locks may be taken before their time",
			slog.Duration("server ahead by", skew), slog.Duration("bound", w.bound))
	}
}
