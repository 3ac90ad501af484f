// SPDX-License-Identifier: Apache-2.0

package gocronlock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/gocronlock"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

// Three hosts are started twenty seconds apart, and their job of a minute takes no time. This is
// go-co-op/gocron#841: a lock that ends with the job lets each host run it.
func TestShiftedTickersRunAFastJobOncePerInterval(t *testing.T) {
	const hosts, minutes = 3, 10
	for _, tt := range []struct {
		name    string
		options []asynclock.LockOption
		want    int64
	}{
		{"a plain lock", nil, hosts * minutes},
		{"a minimum hold", []asynclock.LockOption{asynclock.WithMinHold(54 * time.Second)}, minutes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			adapterkit.Story(t, func(w *adapterkit.World) {
				var runs atomic.Int64
				for range hosts {
					h := newHost(w, tt.options)
					h.every(time.Minute, func() { runs.Add(1) })
					h.scheduler.Start()
					adapterkit.Pass(20 * time.Second)
				}
				adapterkit.Pass(minutes*time.Minute - time.Second)
				if got := runs.Load(); got != tt.want {
					w.Errorf("got %d runs in %d intervals of %d hosts, want %d", got, minutes, hosts, tt.want)
				}
			})
		})
	}
}

// gocron drops the error of Unlock, so nobody is told of a loss.
func TestLocker(t *testing.T) {
	adapterkit.Test(t, adapterkit.Adapter{
		Key: "test:job",
		Open: func(w *adapterkit.World, work func(context.Context) error) func() error {
			h, told := newHost(w, nil), new(errs)
			h.every(time.Minute, func() { _ = work(w.Context()) }, refused(told), panicked(told))
			return h.run(told)
		},
		Every:  time.Minute,
		Held:   asynclock.ErrHeld,
		Silent: asynclock.ErrUnreachable,
		Panics: true,
	})
}

// The process of a holder stops at work. Another host runs the job as soon as the TTL allows.
func TestADeadHostsJobRunsElsewhere(t *testing.T) {
	adapterkit.Story(t, func(w *adapterkit.World) {
		dead := newHost(w, nil)
		end := make(chan struct{})
		dead.every(time.Minute, func() { <-end })
		dead.scheduler.Start()
		adapterkit.Pass(61 * time.Second)
		defer w.Store.Pause(0)()
		defer close(end)
		other := newHost(w, nil)
		var runs atomic.Int64
		other.every(10*time.Second, func() { runs.Add(1) })
		other.scheduler.Start()
		if adapterkit.Pass(11 * time.Second); runs.Load() != 0 {
			w.Error("the job ran inside the TTL of its holder")
		}
		if adapterkit.Pass(10 * time.Second); runs.Load() != 1 {
			w.Errorf("got %d runs after the TTL, want 1", runs.Load())
		}
	})
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	w := adapterkit.NewWorld(t)
	h, locks := newHost(w, nil), w.Client()
	made := func(locks *asynclock.Client, prefix string, options ...asynclock.LockOption) error {
		_, err := gocronlock.New(locks, prefix, options...)
		return err
	}
	task := func(l *gocronlock.Locker, name string, fn gocronlock.Func) error {
		_, _, err := l.Task(name, fn)
		return err
	}
	locked := func(l *gocronlock.Locker) error {
		_, err := l.Lock(t.Context(), "job")
		return err
	}
	adapterkit.WantRefusals(t, func(locks *asynclock.Client, options ...asynclock.LockOption) error {
		return made(locks, "", options...)
	})
	adapterkit.WantResults(t, adapterkit.Results{
		"a wait":         {made(locks, "", asynclock.WithWait(time.Second)), asynclock.ErrInvalidOption},
		"long prefix":    {made(locks, strings.Repeat("x", asynclock.MaxKeyLen)), asynclock.ErrInvalidKey},
		"nil Locker":     {locked(nil), asynclock.ErrInvalidOption},
		"zero Locker":    {locked(new(gocronlock.Locker)), asynclock.ErrInvalidOption},
		"no function":    {task(h.locker, "x", nil), asynclock.ErrInvalidOption},
		"task, nil":      {task(nil, "x", noTask), asynclock.ErrInvalidOption},
		"task, zero":     {task(new(gocronlock.Locker), "x", noTask), asynclock.ErrInvalidOption},
		"no name":        {task(h.locker, "", noTask), asynclock.ErrInvalidKey},
		"not UTF-8":      {task(h.locker, "\xff", noTask), asynclock.ErrInvalidKey},
		"a long name":    {task(h.locker, strings.Repeat("x", asynclock.MaxKeyLen), noTask), asynclock.ErrInvalidKey},
		"all is well":    {made(locks, "", asynclock.WithMinHold(time.Minute)), nil},
		"all is well, 2": {task(h.locker, "x", noTask), nil},
	})
}
