// SPDX-License-Identifier: Apache-2.0

package asynclog

import (
	"context"
	"log/slog"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A notebook keeps what it is told from warnings on. While it is held, it blocks, also
// who asks for its level.
type notebook struct {
	slog.Handler

	held    chan struct{}
	records []slog.Record
}

func (n *notebook) Enabled(_ context.Context, level slog.Level) bool {
	<-n.held
	return level >= slog.LevelWarn
}

func (n *notebook) Handle(_ context.Context, r slog.Record) error {
	n.records = append(n.records, r)
	return nil
}

func (n *notebook) messages() (messages []string) {
	for _, r := range n.records {
		messages = append(messages, r.Message)
	}
	return messages
}

func newNotebook() (*notebook, *Log) {
	n := &notebook{held: make(chan struct{})}
	return n, New(slog.New(n))
}

func TestRecordsAreWrittenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNotebook()
		began := time.Now()
		l.Add(slog.LevelWarn, "first", slog.String("key", "value"))
		l.Add(slog.LevelInfo, "below the handler's level")
		l.Add(slog.LevelError, "second")
		time.Sleep(time.Minute)
		close(n.held)
		if !l.Close() {
			t.Error("Close: got false, want all written")
		}
		if got, want := n.messages(), []string{"first", "second"}; !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		first := n.records[0]
		first.Attrs(func(a slog.Attr) bool {
			if a.String() != "key=value" {
				t.Errorf("attribute: got %v, want key=value", a)
			}
			return true
		})
		if got := first.NumAttrs(); got != 1 {
			t.Errorf("got %d attributes, want one", got)
		}
		if got := n.records[1].Time; !got.Equal(began) {
			t.Errorf("time: got %v, want %v, when it was added", got, began)
		}
		if got := path.Base(first.Source().File); got != "asynclog_test.go" {
			t.Errorf("source: got %q, want this file", got)
		}
	})
}

// A caller that adds a record does not wait for the handler, and Close does not wait long.
func TestAHandlerThatBlocksHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNotebook()
		began := time.Now()
		l.Add(slog.LevelWarn, "one")
		l.Add(slog.LevelWarn, "two")
		if got := time.Since(began); got != 0 {
			t.Errorf("two records took %v, want no time", got)
		}
		if l.Close() {
			t.Error("Close: got true, want that not all is written")
		}
		if got := time.Since(began); got != patience {
			t.Errorf("Close took %v, want %v", got, patience)
		}
		l.Add(slog.LevelWarn, "after Close")
		close(n.held)
		synctest.Wait()
		if got, want := n.messages(), []string{"one", "two"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestNoMoreThanAThousandRecordsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNotebook()
		for range maxWaiting + 7 {
			l.Add(slog.LevelWarn, "again")
		}
		close(n.held)
		synctest.Wait()
		l.Add(slog.LevelWarn, "last")
		if !l.Close() {
			t.Error("Close: got false, want all written")
		}
		messages := n.messages()
		if got, want := len(messages), maxWaiting+2; got != want || messages[got-1] != "last" {
			t.Fatalf("got %d records, the last of them %q; want %d, one of them that some were dropped, and then the last", got, messages[len(messages)-1], want)
		}
		said := n.records[maxWaiting]
		said.Attrs(func(a slog.Attr) bool {
			if a.Value.Int64() != 7 || !strings.Contains(said.Message, "dropped") {
				t.Errorf("got %q with %v, want that 7 were dropped", said.Message, a)
			}
			return true
		})
	})
}

func TestNoLoggerNoLog(t *testing.T) {
	l := New(nil)
	l.Add(slog.LevelError, "to nobody")
	if l != nil || !l.Close() {
		t.Errorf("got %v, want a nil Log that can be closed", l)
	}
}

// A diary is a notebook that takes every level.
type diary struct{ *notebook }

func (d diary) Enabled(context.Context, slog.Level) bool { return true }

// Without a choice, warnings go to what is slog's default at that moment, and never as a flood.
func TestDefault(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	synctest.Test(t, func(t *testing.T) {
		earlier, later := &notebook{held: make(chan struct{})}, &notebook{held: make(chan struct{})}
		close(earlier.held)
		close(later.held)
		slog.SetDefault(slog.New(diary{earlier}))
		l := Default()
		l.Add(slog.LevelInfo, "for nobody")
		l.Add(slog.LevelWarn, "first")
		synctest.Wait()
		slog.SetDefault(slog.New(diary{later}))
		for range 5 {
			l.Add(slog.LevelWarn, "first")
			l.Add(slog.LevelError, "second")
		}
		time.Sleep(again)
		l.Add(slog.LevelWarn, "first")
		l.Add(slog.LevelWarn, "third")
		if !l.Close() {
			t.Error("Close: got false, want all written")
		}
		if got, want := earlier.messages(), []string{"first"}; !slices.Equal(got, want) {
			t.Errorf("the earlier default: got %q, want %q", got, want)
		}
		if got, want := later.messages(), []string{"second", "first", "third"}; !slices.Equal(got, want) {
			t.Fatalf("the later default: got %q, want %q", got, want)
		}
		for i, want := range []int64{0, 5, 0} {
			var omitted int64
			later.records[i].Attrs(func(a slog.Attr) bool {
				omitted = a.Value.Int64()
				return true
			})
			if omitted != want {
				t.Errorf("%q: got %d left out before, want %d", later.records[i].Message, omitted, want)
			}
		}
	})
}

// A chosen log gets everything, however often.
func TestAChosenLogGetsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, l := newNotebook()
		close(n.held)
		for range 3 {
			l.Add(slog.LevelWarn, "again")
		}
		if !l.Close() || len(n.records) != 3 {
			t.Errorf("got %d records, want 3", len(n.records))
		}
	})
}
