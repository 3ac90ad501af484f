// SPDX-License-Identifier: Apache-2.0

// Package asynclog writes log records on a goroutine that nothing depends on.
//
// A log handler is the application's code: it may block, or call the library. The handler is
// therefore never called under a mutex, or on a goroutine that leases depend on. This includes the
// question whether it handles a level.
package asynclog

import (
	"context"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/internal/batch"
)

// Bounds: how many records wait for a handler at most, and how long Close waits.
const (
	maxWaiting = 1000
	patience   = time.Second
)

// again is how soon [Default] writes a message again.
const again = time.Minute

// A Log passes records on to a handler, in order. A nil Log writes nothing.
type Log struct {
	handler func() slog.Handler
	least   slog.Level                // lower levels are ignored
	repeats *repeats                  // nil: every record is written
	records *batch.Queue[slog.Record] // has a goroutine while it has records; Close waits for it
	waiting atomic.Int64              // records that the handler has not returned from
	dropped atomic.Int64              // since the log last reported drops
}

// New makes a log that writes to the logger. It returns nil for a nil logger.
func New(logger *slog.Logger) *Log {
	if logger == nil {
		return nil
	}
	return newLog(&Log{handler: logger.Handler, least: math.MinInt})
}

// Default makes the log of who has chosen none. It writes warnings and errors to slog.Default(), as
// that is when a record is written. It writes a message once a minute at most, and then says how
// many were left out.
func Default() *Log {
	return newLog(&Log{
		handler: func() slog.Handler { return slog.Default().Handler() },
		least:   slog.LevelWarn,
		repeats: &repeats{of: make(map[string]*repetition)},
	})
}

func newLog(l *Log) *Log {
	l.records = batch.New(maxWaiting, 1, 0, l.write)
	return l
}

// Add queues a record with the present time, and returns at once. If 1000 records already wait for
// the handler, further ones are only counted, and the log reports how many.
func (l *Log) Add(level slog.Level, message string, attrs ...slog.Attr) {
	if l == nil || level < l.least {
		return
	}
	omitted, repeated := l.repeats.note(message)
	if repeated {
		return
	}
	if l.waiting.Add(1) > maxWaiting {
		l.waiting.Add(-1)
		l.dropped.Add(1)
		return
	}
	var caller [1]uintptr
	runtime.Callers(2, caller[:])
	r := slog.NewRecord(time.Now(), level, message, caller[0])
	r.AddAttrs(attrs...)
	if omitted > 0 {
		r.AddAttrs(slog.Int("left out", omitted))
	}
	l.records.Add(0, r) // it is not added after Close
}

// write writes a batch, in order. Like slog, it ignores a handler's error.
func (l *Log) write(_ int, records []slog.Record) {
	ctx := context.Background()
	for _, r := range records {
		handler := l.handler()
		if handler.Enabled(ctx, r.Level) {
			_ = handler.Handle(ctx, r)
		}
		l.waiting.Add(-1)
		if n := l.dropped.Swap(0); n > 0 {
			l.Add(slog.LevelWarn, "asynclock: the log handler is slow; records were dropped", slog.Int64("number", n))
		}
	}
}

// Close refuses further records and waits until the earlier ones are written, for at most a second.
// It reports whether they are. A handler may block for ever.
func (l *Log) Close() bool {
	if l == nil {
		return true
	}
	written := make(chan struct{})
	go func() { // ends when the handler has returned from all records
		l.records.Close()
		close(written)
	}()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-written:
		return true
	case <-limit.C:
		return false
	}
}

// repeats knows which messages were written lately. The messages are few: they are constants.
type repeats struct {
	mu sync.Mutex
	of map[string]*repetition
}

// A repetition is when a message may be written again, and how many were left out so far.
type repetition struct {
	after   time.Time
	omitted int
}

// note reports whether a message was written lately. If it was not, it says how many were left out
// before.
func (r *repeats) note(message string) (omitted int, repeated bool) {
	if r == nil {
		return 0, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now, last := time.Now(), r.of[message]
	if last == nil {
		last = new(repetition)
		r.of[message] = last
	}
	if now.Before(last.after) {
		last.omitted++
		return 0, true
	}
	omitted = last.omitted
	*last = repetition{after: now.Add(again)}
	return omitted, false
}
