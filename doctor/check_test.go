// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/doctor"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

const allOK = "ok answers, ok lock, ok messages, ok locks"

var errDenied = fmt.Errorf("%w: no permission to run 'evalsha'", store.ErrDenied)

func TestAStoreThatIsFit(t *testing.T) {
	story(t, func(w *world) {
		w.hold("orders/1", "a", "b", "c")
		w.hold("orders/2", "a", "b")
		w.hold("orders/3", "a")
		got := w.check()
		got.wantChecks(w.T, allOK)
		got.want(w.T, `ok locks: 3 keys are held, and 2 are waited for; the longest queue is that of "orders/1", with 2`)
		if doctor.Worst(got) != doctor.OK {
			w.Errorf("got the verdict %v, want ok", doctor.Worst(got))
		}
		if n := len(w.bad.Calls(asynclocktest.Close.Any)); n != w.clinic.opened {
			w.Errorf("got %d sessions closed of %d", n, w.clinic.opened)
		}
	})
}

func TestWorst(t *testing.T) {
	t.Parallel()
	if got := doctor.Worst(nil); got != doctor.OK {
		t.Errorf("got %v of nothing, want ok", got)
	}
	all := []doctor.Finding{{Verdict: doctor.Note}, {Verdict: doctor.Fail}, {Verdict: doctor.Warn}}
	if got := doctor.Worst(all); got != doctor.Fail {
		t.Errorf("got %v, want fail", got)
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	var none *memstore.Store
	for name, call := range map[string]func() error{
		"nil store":        func() error { _, err := doctor.Check(t.Context(), nil); return err },
		"nil pointer":      func() error { _, err := doctor.Why(t.Context(), none, "k"); return err },
		"a store of new":   func() error { _, err := doctor.Check(t.Context(), new(memstore.Store)); return err },
		"nil option":       func() error { _, err := doctor.Check(t.Context(), memstore.New(), nil); return err },
		"a TTL of nothing": func() error { _, err := doctor.Check(t.Context(), memstore.New(), doctor.WithTTL(0)); return err },
		"a TTL of two days": func() error {
			_, err := doctor.Why(t.Context(), memstore.New(), "k", doctor.WithTTL(48*time.Hour))
			return err
		},
		"why a store of new":  func() error { _, err := doctor.Why(t.Context(), new(memstore.Store), "k"); return err },
		"why with bad option": func() error { _, err := doctor.Why(t.Context(), memstore.New(), "k", nil); return err },
	} {
		if err := call(); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("%s: got %v, want %v", name, err, store.ErrInvalidOption)
		}
	}
	for _, key := range []string{"", "\xff", strings.Repeat("k", store.MaxKeyLen+1)} {
		if _, err := doctor.Why(t.Context(), memstore.New(), key); !errors.Is(err, store.ErrInvalidKey) {
			t.Errorf("key %q: got %v, want %v", key, err, store.ErrInvalidKey)
		}
	}
}

func TestAStoreThatCannotBeOpened(t *testing.T) {
	story(t, func(w *world) {
		w.clinic.opens = func(int) error { return errDenied }
		got := w.check()
		got.wantChecks(w.T, "fail server")
		got.want(w.T, "fail server: The store can't be opened: denied by the store: no permission")
		w.why("k").wantChecks(w.T, "fail server")
	})
}

// TestEndOfContext: the findings of a check that was cut short are not there, and nothing is left.
func TestEndOfContext(t *testing.T) {
	story(t, func(w *world) {
		w.bad.Every(asynclocktest.Renew.Any, asynclocktest.Hang)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		got, err := doctor.Check(ctx, w.clinic)
		if !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("got %v, want that ctx has ended", err)
		}
		findings(got).wantChecks(w.T, "ok answers")
		if _, err := doctor.Check(ctx, w.clinic); !errors.Is(err, context.DeadlineExceeded) || w.clinic.opened != 1 {
			w.Errorf("got %v and %d sessions, want the error of ctx and no other session", err, w.clinic.opened)
		}
		if got, err := doctor.Why(ctx, w.clinic, "k"); !errors.Is(err, context.DeadlineExceeded) || len(got) != 0 {
			w.Errorf("got %v and %v, want the error of ctx", got, err)
		}
	})
}

// A checked store has findings of its own.
type checked struct {
	*clinic

	check func(ctx context.Context, report func(doctor.Finding))
}

func (c checked) Check(ctx context.Context, report func(doctor.Finding)) { c.check(ctx, report) }

func TestAStoreThatChecksItself(t *testing.T) {
	story(t, func(w *world) {
		st := checked{w.clinic, func(_ context.Context, report func(doctor.Finding)) {
			report(doctor.Finding{Check: "version", Verdict: doctor.OK})
			report(doctor.Finding{Check: "eviction", Verdict: doctor.Fail, Fix: "noeviction"})
		}}
		got, err := doctor.Check(w.Context(), st)
		if err != nil {
			w.Fatal(err)
		}
		findings(got).wantChecks(w.T, "ok answers, ok lock, ok messages, ok version, fail eviction, ok locks")

		st.check = func(ctx context.Context, _ func(doctor.Finding)) { <-ctx.Done() }
		began := time.Now()
		if got, err = doctor.Check(w.Context(), st); err != nil {
			w.Fatal(err)
		}
		findings(got).want(w.T, "warn store: The checks of the store itself did not end within 10s")
		if took := time.Since(began); took > 11*time.Second {
			w.Errorf("got %v, want some ten seconds", took)
		}
	})
}

// TestASilentServer: a server that accepts and never answers does not hang us, whatever it has answered before.
func TestASilentServer(t *testing.T) {
	for op, want := range map[asynclocktest.Op]string{
		asynclocktest.Inspect: "fail answers, warn store",
		asynclocktest.Acquire: "ok answers, fail lock, warn store",
		asynclocktest.Renew:   "ok answers, fail lock, warn store",
		asynclocktest.Release: "ok answers, fail lock, warn store",
	} {
		t.Run(want, func(t *testing.T) {
			story(t, func(w *world) {
				silent := false
				w.bad.Every(func(c asynclocktest.Call) bool { silent = silent || c.Op == op; return silent }, asynclocktest.Hang)
				st := checked{w.clinic, func(ctx context.Context, _ func(doctor.Finding)) { <-ctx.Done() }}
				began := time.Now()
				got, err := doctor.Check(w.Context(), st)
				if err != nil {
					w.Fatal(err)
				}
				findings(got).wantChecks(w.T, want)
				findings(got).want(w.T, want[strings.Index(want, "fail"):strings.LastIndex(want, ",")]+": A key can")
				if took := time.Since(began); took > 10*time.Second {
					w.Errorf("got %v, want ten seconds at most", took)
				}
				time.Sleep(time.Minute) // until the TTL has ended
			})
		})
	}
}

// TestUnopened: an error of several lines is one sentence.
func TestUnopened(t *testing.T) {
	got := doctor.Unopened(errors.New("failed to connect:\n\t127.0.0.1:1: refused\n\t127.0.0.1:2: refused")).Fact
	if want := "The store can't be opened: failed to connect: 127.0.0.1:1: refused; 127.0.0.1:2: refused."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
