// SPDX-License-Identifier: Apache-2.0

package once_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store"
)

func TestBadInput(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		type call struct {
			ctx     context.Context
			locks   *asynclock.Client
			key     string
			every   time.Duration
			options []once.Option
		}
		good := call{w.Context(), c, key, every, nil}
		for name, change := range map[string]func(*call){
			"no context":            func(c *call) { c.ctx = nil },
			"no client":             func(c *call) { c.locks = nil },
			"a zero client":         func(c *call) { c.locks = new(asynclock.Client) },
			"no interval":           func(c *call) { c.every = 0 },
			"a negative interval":   func(c *call) { c.every = -every },
			"a short interval":      func(c *call) { c.every = once.MinInterval - 1 },
			"a long interval":       func(c *call) { c.every = once.MaxInterval + time.Microsecond },
			"an odd interval":       func(c *call) { c.every = every + 1 },
			"a negative offset":     func(c *call) { c.options = []once.Option{once.WithOffset(-1)} },
			"an offset of all":      func(c *call) { c.options = []once.Option{once.WithOffset(every)} },
			"no attempts":           func(c *call) { c.options = []once.Option{once.WithAttempts(0)} },
			"a nil option":          func(c *call) { c.options = []once.Option{nil} },
			"a nil option of locks": func(c *call) { c.options = []once.Option{once.WithLockOptions(nil)} },
			"a bad option of locks": func(c *call) { c.options = []once.Option{once.WithLockOptions(asynclock.WithTTL(0))} },
		} {
			bad := good
			change(&bad)
			_, err := once.Do(bad.ctx, bad.locks, bad.key, bad.every, w.never, bad.options...)
			everyErr := once.Every(bad.ctx, bad.locks, bad.key, bad.every, w.never, bad.options...)
			for call, err := range map[string]error{"Do": err, "Every": everyErr} {
				w.wantRefused(name, call, err)
			}
		}
		_, err := once.Do(w.Context(), c, key, every, nil)
		w.wantError(err, asynclock.ErrInvalidOption)
		_, err = once.Do(w.Context(), c, "", every, w.never)
		w.wantError(err, asynclock.ErrInvalidKey)
		w.wantError(once.Every(w.Context(), c, "", every, w.never), asynclock.ErrInvalidKey)
		_, err = once.LastRun(w.Context(), nil, key)
		w.wantError(err, asynclock.ErrInvalidOption)
		for _, longest := range []time.Duration{once.MinInterval, once.MaxInterval} {
			_, err := once.Do(w.Context(), c, "key of "+longest.String(), longest, fn)
			w.wantNoError(err)
		}
	})
}

// wantRefused reports a call that accepted bad input.
func (w *world) wantRefused(name, call string, err error) {
	w.Helper()
	if err == nil {
		w.Errorf("%s with %s: got no error", call, name)
		return
	}
	w.wantError(err, asynclock.ErrInvalidOption)
}

func TestANoteThatIsNoRecord(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		for _, data := range []string{
			"", "{}", "null", "[]", "leader", `{"v":1}`, `{"v":0,"attempt":1}`, `{"v":1,"attempt":0}`,
			`{"v":1,"attempt":1,"missed":-1}`, `{"v":1,"attempt":1,"start":9223372036854775807}`, `{"v":1,"attempt":1,"ended":-9223372036854775808}`,
			`{"v":1,"attempt":1e99}`, `{"v":1,"attempt":1073741825}`, `{"v":1,"attempt":1,"missed":1073741825}`,
		} {
			w.setNote(c, data)
			_, err := once.Do(w.Context(), c, key, every, w.never)
			w.wantError(err, asynclock.ErrForeignData)
			_, err = once.LastRun(w.Context(), c, key)
			w.wantError(err, asynclock.ErrForeignData)
			w.wantError(once.Every(w.Context(), c, key, every, w.never), asynclock.ErrForeignData)
		}
		w.setNote(c, `{"v":1,"attempt":1,"and":"more"}`) // as a later release may add
		w.wantRan(c)
	})
}

// A record of the largest numbers is followed by one that can be read.
func TestCountsHaveABound(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.setNote(c, fmt.Sprintf(`{"v":1,"attempt":1073741824,"start":%d}`, time.Now().UnixMicro()))
		w.wantRan(c)
		w.wantDone(c)
		w.setNote(c, `{"v":1,"attempt":1073741825}`)
		_, err := once.LastRun(w.Context(), c, key)
		w.wantError(err, asynclock.ErrForeignData)
		w.setNote(c, `{"v":1,"attempt":1,"start":-9007199254740992}`)
		o, err := once.Do(w.Context(), c, key, time.Second, fn)
		w.wantNoError(err)
		if o.Last.Missed != 1<<30 {
			w.Errorf("Missed: got %d, want %d", o.Last.Missed, 1<<30)
		}
	})
}

// setNote leaves a note beside the key.
func (w *world) setNote(c *asynclock.Client, data string) {
	w.Helper()
	err := c.WithLock(w.Context(), key, func(ctx context.Context, lease *asynclock.Lease) error {
		return lease.SetNote(ctx, []byte(data), time.Hour)
	})
	w.wantNoError(err)
}

func TestLastRun(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		if last, err := once.LastRun(w.Context(), c, key); err != nil || last != (once.RunInfo{}) {
			w.Errorf("LastRun of a job that never ran: got %+v, error %v; want none", last, err)
		}
		run := w.wantRan(c)
		if last, err := once.LastRun(w.Context(), c, key); err != nil || last != run {
			w.Errorf("LastRun: got %+v, error %v; want %+v", last, err, run)
		}
		time.Sleep(7*24*time.Hour - time.Second)
		if last, err := once.LastRun(w.Context(), c, key); err != nil || last != run {
			w.Errorf("LastRun after nearly a week: got %+v, error %v; want %+v", last, err, run)
		}
	})
}

// The record of a long interval must outlive it.
func TestARecordOutlivesItsInterval(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		_, err := once.Do(w.Context(), c, key, once.MaxInterval, fn)
		w.wantNoError(err)
		time.Sleep(2 * once.MaxInterval)
		if last, err := once.LastRun(w.Context(), c, key); err != nil || last.Start.IsZero() {
			w.Errorf("LastRun: got %+v, error %v; want the run", last, err)
		}
	})
}

type noteless struct{ store.Store }

func (s noteless) Features() store.Features { return store.Features{Tokens: true} }

func TestAStoreWithoutNotes(t *testing.T) {
	story(t, func(w *world) {
		c := w.clientOf(noteless{w.store})
		_, err := once.Do(w.Context(), c, key, every, w.never)
		w.wantError(err, asynclock.ErrUnsupported)
		w.wantError(once.Every(w.Context(), c, key, every, w.never), asynclock.ErrUnsupported)
		if n := len(w.store.Calls(nil)); n != 0 {
			w.Errorf("requests: got %d, want none", n)
		}
	})
}
