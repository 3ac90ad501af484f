// SPDX-License-Identifier: Apache-2.0

package cronlock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/cronlock"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

// The clocks of three hosts are a second apart, and their job of a minute takes no time.
func TestAFastJobRunsOncePerInterval(t *testing.T) {
	const hosts, minutes = 3, 10
	for _, tt := range []struct {
		name    string
		options []asynclock.LockOption
		want    int64
	}{
		{"a plain lock", nil, hosts * minutes},
		{"a minimum hold", []asynclock.LockOption{asynclock.WithMinHold(50 * time.Second)}, minutes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			adapterkit.Story(t, func(w *adapterkit.World) {
				var runs atomic.Int64
				for range hosts {
					h := newHost(w)
					h.plain(func() { runs.Add(1) }, tt.options...)
					adapterkit.Pass(time.Second)
				}
				if adapterkit.Pass(minutes * time.Minute); runs.Load() != tt.want {
					w.Errorf("got %d runs in %d intervals of %d hosts, want %d", runs.Load(), minutes, hosts, tt.want)
				}
			})
		})
	}
}

func TestJob(t *testing.T) {
	adapterkit.Test(t, adapterkit.Adapter{
		Key: "job",
		Open: func(w *adapterkit.World, work func(context.Context) error) func() error {
			h := newHost(w)
			h.job(func(ctx context.Context, _ *asynclock.Lease) error { return work(ctx) })
			return h.run()
		},
		Every:  time.Minute,
		Silent: asynclock.ErrUnreachable,
		Lost:   asynclock.ErrLost,
		Scoped: true,
		Panics: true,
	})
}

// A plain job goes on after a loss. Its log says so, once the job is over.
func TestPlainJob(t *testing.T) {
	adapterkit.Test(t, adapterkit.Adapter{
		Key: "job",
		Open: func(w *adapterkit.World, work func(context.Context) error) func() error {
			h := newHost(w)
			h.plain(func() { _ = work(w.Context()) })
			return h.run()
		},
		Every:  time.Minute,
		Silent: asynclock.ErrUnreachable,
		Lost:   asynclock.ErrLost,
		Panics: true,
	})
}

func TestTheLogHasASkip(t *testing.T) {
	adapterkit.Story(t, func(w *adapterkit.World) {
		h := newHost(w)
		h.plain(func() { w.Error("the job ran") })
		defer w.Hold("job").Unlock(w.Context())
		adapterkit.Pass(61 * time.Second)
		if len(h.log.infos) != 1 || !strings.HasPrefix(h.log.infos[0], "skip [key job holder ") {
			w.Errorf("got log %q, want a skip with the holder", h.log.infos)
		}
	})
}

func TestAJobEndsWithTheLockersContext(t *testing.T) {
	adapterkit.Story(t, func(w *adapterkit.World) {
		h := newHost(w)
		begun, failed := 0, errors.New("stopped halfway")
		h.job(func(ctx context.Context, _ *asynclock.Lease) error {
			begun++
			select {
			case <-ctx.Done():
				return failed
			case <-time.After(time.Hour):
				return nil
			}
		})
		adapterkit.Pass(61 * time.Second)
		h.end()
		adapterkit.Pass(0)
		if err := h.log.err(); !errors.Is(err, failed) {
			w.Errorf("got log %v, want the error of the job", err)
		}
		adapterkit.Pass(2 * time.Minute)
		if err := h.log.err(); begun != 1 || !errors.Is(err, context.Canceled) {
			w.Errorf("got %d runs and log %v, want no other run, and why", begun, err)
		}
	})
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	w := adapterkit.NewWorld(t)
	h, locks := newHost(w), w.Client()
	made := func(ctx context.Context, locks *asynclock.Client, logger cron.Logger) error {
		_, err := cronlock.New(ctx, locks, logger)
		return err
	}
	once := func(l *cronlock.Locker, key string, options ...asynclock.LockOption) error {
		_, err := l.Once(key, options...)
		return err
	}
	job := func(l *cronlock.Locker, key string, fn cronlock.Func) error {
		_, err := l.Job(key, fn)
		return err
	}
	fn := func(context.Context, *asynclock.Lease) error { return nil }
	var none context.Context
	adapterkit.WantRefusals(t, func(locks *asynclock.Client, options ...asynclock.LockOption) error {
		l, err := cronlock.New(t.Context(), locks, h.log)
		if err != nil {
			return err
		}
		return once(l, "x", options...)
	})
	adapterkit.WantResults(t, adapterkit.Results{
		"no context":  {made(none, locks, h.log), asynclock.ErrInvalidOption},
		"no logger":   {made(t.Context(), locks, nil), asynclock.ErrInvalidOption},
		"nil Locker":  {once(nil, "x"), asynclock.ErrInvalidOption},
		"zero Locker": {once(new(cronlock.Locker), "x"), asynclock.ErrInvalidOption},
		"no key":      {once(h.locker, ""), asynclock.ErrInvalidKey},
		"a wait":      {once(h.locker, "x", asynclock.WithWait(time.Second)), asynclock.ErrInvalidOption},
		"no function": {job(h.locker, "x", nil), asynclock.ErrInvalidOption},
		"job, no key": {job(h.locker, "", fn), asynclock.ErrInvalidKey},
		"all is well": {job(h.locker, "x", fn), nil},
	})
}
