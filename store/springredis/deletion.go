// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/asynclock/asynclock-go/internal/asynclog"
)

// A deletion is the command that scripts delete locks with: the best of those in shared.lua
// that the server has. Scripts try the commands from this one on, and say which one worked.
// So only the first script tries in vain, and one more if a failover leads to an older
// server.
type deletion struct {
	place atomic.Int32 // in deletions, less one: the zero value starts with the best
}

// deletions are the names of the commands, in the order in which shared.lua tries
// them.
var deletions = [...]string{"DELEX", "UNLINK", "DEL"}

// from returns the argument of the next script.
func (d *deletion) from() string { return strconv.Itoa(int(d.place.Load()) + 1) }

// used records a script's answer: the number of the command that worked, from 1, or 0.
func (d *deletion) used(n int64, log *asynclog.Log) {
	if n < 1 {
		return
	}
	was := d.place.Load()
	if place := int32(n) - 1; place > was && d.place.CompareAndSwap(was, place) {
		log.Add(slog.LevelInfo, "springredis: the server lacks or forbids "+deletions[was], slog.String("deletes with", deletions[place]))
	}
}
