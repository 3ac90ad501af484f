// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// badOptions are values that make no sense.
var badOptions = map[string]asynclock.LockOption{
	"no TTL":               asynclock.WithTTL(0),
	"a negative TTL":       asynclock.WithTTL(-time.Second),
	"too short a TTL":      asynclock.WithTTL(asynclock.MinTTL - 1),
	"too long a TTL":       asynclock.WithTTL(asynclock.MaxTTL + 1),
	"a negative max hold":  asynclock.WithMaxHold(-1),
	"too short a max hold": asynclock.WithMaxHold(asynclock.MinTTL - 1),
	"an endless max hold":  asynclock.WithMaxHold(math.MaxInt64),
	"a negative min hold":  asynclock.WithMinHold(-1),
	"too long a min hold":  asynclock.WithMinHold(asynclock.MaxTTL + 1),
	"a negative retention": asynclock.WithRetention(-1),
	"too long a retention": asynclock.WithRetention(asynclock.MaxTTL + 1),
	"no queue":             asynclock.WithQueueLimit(0),
	"a negative queue":     asynclock.WithQueueLimit(-1),
	"too long a holder":    asynclock.WithDescription(strings.Repeat("x", asynclock.MaxDescriptionLen+1)),
	"a holder in latin-1":  asynclock.WithDescription("caf\xe9"),
	"a holder of 2 lines":  asynclock.WithDescription("one\ntwo"),
	"a holder that beeps":  asynclock.WithDescription("\a"),
	"no window":            asynclock.WithWindow(0),
	"too wide a window":    asynclock.WithWindow(asynclock.MaxWindow + 1),
	"a nil option":         nil,
}

// goodOptions are values at the limits of what makes sense.
var goodOptions = map[string]asynclock.LockOption{
	"the shortest TTL":      asynclock.WithTTL(asynclock.MinTTL),
	"the longest TTL":       asynclock.WithTTL(asynclock.MaxTTL),
	"no max hold":           asynclock.WithMaxHold(0),
	"the shortest max hold": asynclock.WithMaxHold(asynclock.MinTTL),
	"the longest max hold":  asynclock.WithMaxHold(10 * 365 * 24 * time.Hour),
	"no min hold":           asynclock.WithMinHold(0),
	"no retention":          asynclock.WithRetention(0),
	"the longest retention": asynclock.WithRetention(asynclock.MaxTTL),
	"the longest queue":     asynclock.WithQueueLimit(math.MaxInt),
	"a queue of one":        asynclock.WithQueueLimit(1),
	"no holder":             asynclock.WithDescription(""),
	"the longest holder":    asynclock.WithDescription(strings.Repeat("é", asynclock.MaxDescriptionLen/2)),
	"without renewal":       asynclock.WithRenewal(false),
	"with renewal":          asynclock.WithRenewal(true),
}

func TestBadOptionsAreRefused(t *testing.T) {
	for name, option := range badOptions {
		scene(t, name, func(w *world) {
			bad, err := asynclock.New(w.store, option)
			if bad != nil {
				w.Error("New made a client")
			}
			wantError(w, err, asynclock.ErrInvalidOption)

			c := w.client()
			_, err = c.Lock(w.Context(), "key", asynclock.WithTTL(ttl), option)
			wantError(w, err, asynclock.ErrInvalidOption)
			wantOp(w, err, "lock", "key")
			wantError(w, errOf(c.TryLock(w.Context(), "key", option)), asynclock.ErrInvalidOption)
			wantError(w, errOf((<-c.LockChan(w.Context(), "key", option)).Lease()), asynclock.ErrInvalidOption)
			wantError(w, c.WithLock(w.Context(), "key", nil, option), asynclock.ErrInvalidOption)
			w.wantCalls(asynclocktest.Any, 0)
		})
	}
	for name, option := range map[string]asynclock.ClientOption{
		"a nil option": nil, "a nil logger": asynclock.WithLogger(nil),
	} {
		t.Run("New with "+name, func(t *testing.T) {
			wantError(t, errOf(asynclock.New(memstore.New(), option)), asynclock.ErrInvalidOption)
		})
	}
	t.Run("New without a store", func(t *testing.T) {
		wantError(t, errOf(asynclock.New(nil)), asynclock.ErrInvalidOption)
		wantError(t, errOf(asynclock.New((*memstore.Store)(nil))), asynclock.ErrInvalidOption)
	})
}

func TestGoodOptionsAreTaken(t *testing.T) {
	for name, option := range goodOptions {
		scene(t, name, func(w *world) {
			byDefault, byCall := w.client(option), w.client()
			for _, l := range []*asynclock.Lease{lock(w, byDefault, "by default"), lock(w, byCall, "by call", option)} {
				wantValid(w, l)
				unlock(w, l)
			}
			abandon(byDefault) // which may retain a key
			abandon(byCall)
			w.wantUnused()
		})
	}
}

// Options given to New apply to every acquisition, unless the call says otherwise.
func TestOptionsOfACallGoBeforeThoseOfTheClient(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithTTL(time.Minute), asynclock.WithDescription("default"), asynclock.WithRenewal(false))
		lock(w, c, "default")
		lock(w, c, "call", asynclock.WithTTL(time.Hour), asynclock.WithDescription("call"), asynclock.WithRenewal(true))
		lock(w, c, "default again")
		for key, want := range map[string]store.AcquireRequest{
			"default":       {TTL: time.Minute, Description: "default"},
			"call":          {TTL: time.Hour, Description: "call"},
			"default again": {TTL: time.Minute, Description: "default"},
		} {
			asked := w.store.Calls(asynclocktest.Acquire.On(key))[0].Acquire
			if asked.TTL != want.TTL || asked.Description != want.Description {
				w.Errorf("key %q was asked for with TTL %v and holder %q, want %v and %q",
					key, asked.TTL, asked.Description, want.TTL, want.Description)
			}
		}
		w.pass(time.Hour)
		if held := w.inspect("call").Held; !held || w.inspect("default").Held {
			w.Errorf("held after an hour: got %v where the call asked for renewal, want it only there", held)
		}
	})
}

func TestHolderSaysByDefaultWhereToLook(t *testing.T) {
	story(t, func(w *world) {
		lock(w, w.client(), "key")
		if got := w.inspect("key").Holder; !strings.Contains(got, "pid ") {
			w.Errorf("holder: got %q, want it to name the process", got)
		}
	})
}

func TestBadKeysAreRefused(t *testing.T) {
	long := strings.Repeat("x", asynclock.MaxKeyLen+1)
	for name, key := range map[string]string{
		"empty": "", "too long": long, "1 MiB": strings.Repeat("}\x00\r\n", 1<<18), "not UTF-8": "caf\xe9", "half a character": "key\xf0\x9f\x94",
	} {
		scene(t, name, func(w *world) {
			c := w.client()
			_, lockErr := c.Lock(w.Context(), key)
			_, tryErr := c.TryLock(w.Context(), key)
			_, futureErr := (<-c.LockChan(w.Context(), key)).Lease()
			_, inspectErr := c.Inspect(w.Context(), key)
			_, forceErr := c.ForceUnlock(w.Context(), key, 0)
			for op, err := range map[string]error{
				"lock": lockErr, "try lock": tryErr, "inspect": inspectErr, "force unlock": forceErr,
			} {
				wantError(w, err, asynclock.ErrInvalidKey)
				wantOp(w, err, op, key)
			}
			wantError(w, futureErr, asynclock.ErrInvalidKey)
			wantError(w, c.WithLock(w.Context(), key, func(context.Context, *asynclock.Lease) error { return nil }), asynclock.ErrInvalidKey)
			for _, err := range c.List(w.Context(), key) {
				if key != "" { // which is a prefix of all
					wantError(w, err, asynclock.ErrInvalidKey)
					wantOp(w, err, "list", key)
				}
			}
			if got := w.calls(asynclocktest.Match(asynclocktest.List.Any)); key != "" && got != 0 || w.calls(asynclocktest.Any) != got {
				w.Errorf("the store was asked %d times, want never", w.calls(asynclocktest.Any))
			}
		})
	}
}

// Any other text is a key, and no two are the same.
func TestKeysAreTakenAsTheyAre(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		keys := []string{
			" ", "  ", "\x00", "a b", "a\nb", "{a}", "}{", "a*", "a?", "[a]", `\`, "%", "%20", "é", "e\u0301", "日本語", "🔒",
			strings.Repeat("x", asynclock.MaxKeyLen), strings.Repeat("x", asynclock.MaxKeyLen-1),
		}
		for _, key := range keys {
			l := lock(w, c, key)
			if l.Key() != key {
				w.Errorf("got key %q, want %q", l.Key(), key)
			}
		}
		seen := make(map[string]bool)
		for info, err := range c.List(w.Context(), "") {
			if err != nil {
				w.Fatal(err)
			}
			seen[info.Key] = true
		}
		for _, key := range keys {
			if !seen[key] {
				w.Errorf("key %q is not listed", key)
			}
		}
	})
}

func TestBadTTLOfARenewalIsRefused(t *testing.T) {
	story(t, func(w *world) {
		l := lock(w, w.client(), "key")
		for _, ttl := range []time.Duration{0, -1, asynclock.MinTTL - 1, asynclock.MaxTTL + 1, math.MinInt64, math.MaxInt64} {
			err := l.Renew(w.Context(), ttl)
			wantError(w, err, asynclock.ErrInvalidOption)
			wantOp(w, err, "renew", "key")
		}
		wantValid(w, l)
		w.wantCalls(asynclocktest.Renew.Any, 0)
	})
}

// A nil context is a mistake that linters find; here it is an error and no
// panic.
func TestNilContextIsRefused(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		l := lock(w, c, "key")
		var none context.Context
		_, lockErr := c.Lock(none, "other")
		_, tryErr := c.TryLock(none, "other")
		_, futureErr := (<-c.LockChan(none, "other")).Lease()
		_, inspectErr := c.Inspect(none, "key")
		_, forceErr := c.ForceUnlock(none, "key", 0)
		var listErr error
		for _, listErr = range c.List(none, "") {
		}
		for op, err := range map[string]error{
			"lock": lockErr, "try lock": tryErr, "future": futureErr, "with lock": c.WithLock(none, "other", nil),
			"renew": l.Renew(none, ttl), "inspect": inspectErr, "force unlock": forceErr, "list": listErr,
			"close": c.Close(none),
		} {
			if err == nil {
				w.Errorf("%s: got no error", op)
			}
			wantError(w, err, asynclock.ErrInvalidOption)
		}
		wantValid(w, l)
		unlock(w, l)
	})
}

// But who unlocks is through with the lease, and often does not look at the error: a key
// that is renewed for ever would be worse than a nil that goes unnoticed.
func TestUnlockTakesANilContext(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		var none context.Context
		wantError(w, lock(w, c, "one").Unlock(none), nil)
		wantError(w, <-lock(w, c, "another").UnlockChan(none), nil)
		w.wantUnused()
	})
}

// An ended context asks for nothing.
func TestEndedContextIsRefusedWithoutAsking(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		_, lockErr := c.Lock(ctx, "key")
		_, tryErr := c.TryLock(ctx, "key")
		_, futureErr := (<-c.LockChan(ctx, "key")).Lease()
		for _, err := range []error{lockErr, tryErr, futureErr} {
			wantError(w, err, context.Canceled)
		}
		w.wantCalls(asynclocktest.Any, 0)
	})
}

// Values that no function of the package has made give errors, and never panic.
func TestZeroClient(t *testing.T) {
	ctx := t.Context()
	fn := func(context.Context, *asynclock.Lease) error { return errors.New("fn was called") }
	for name, c := range map[string]*asynclock.Client{"nil": nil, "zero": {}} {
		if got := c.TTL(); got != asynclock.DefaultTTL {
			t.Errorf("TTL of a %s client: got %v, want %v", name, got, asynclock.DefaultTTL)
		}
		_, lockErr := c.Lock(ctx, "key")
		_, tryErr := c.TryLock(ctx, "key")
		_, futureErr := (<-c.LockChan(ctx, "key")).Lease()
		_, eachErr := (<-c.LockEach(ctx, slices.Values([]string{"key"}))).Lease()
		_, doErr := asynclock.Do(ctx, c, "key", func(context.Context, *asynclock.Lease) (int, error) { return 0, nil })
		_, inspectErr := c.Inspect(ctx, "key")
		_, forceErr := c.ForceUnlock(ctx, "key", 0)
		_, noteErr := c.Note(ctx, "key")
		var listErr error
		for _, listErr = range c.List(ctx, "") {
		}
		for call, err := range map[string]error{
			"Lock": lockErr, "TryLock": tryErr, "LockChan": futureErr, "LockEach": eachErr, "Do": doErr, "Inspect": inspectErr,
			"ForceUnlock": forceErr, "Note": noteErr, "List": listErr, "WithLock": c.WithLock(ctx, "key", fn), "Close": c.Close(ctx),
		} {
			if !errors.Is(err, asynclock.ErrInvalidOption) {
				t.Errorf("%s of a %s client: got %v, want ErrInvalidOption", call, name, err)
			}
		}
	}
}

func TestZeroLease(t *testing.T) {
	for name, l := range map[string]*asynclock.Lease{"nil": nil, "zero": {}} {
		for call, err := range map[string]error{
			"Unlock": l.Unlock(t.Context()), "UnlockChan": <-l.UnlockChan(t.Context()), "Renew": l.Renew(t.Context(), time.Minute),
			"SetNote": l.SetNote(t.Context(), nil, time.Minute),
			"Err":     l.Err(), "the context's cause": context.Cause(l.Context()),
		} {
			if !errors.Is(err, asynclock.ErrInvalidOption) {
				t.Errorf("%s of a %s lease: got %v, want ErrInvalidOption", call, name, err)
			}
		}
		<-l.Done()
		if l.Valid(0) || l.Key() != "" || l.Token() != 0 || !l.Deadline().IsZero() {
			t.Errorf("a %s lease looks like one that lasts", name)
		}
	}
}

// A nil function is refused before the key is taken.
func TestNilFunctionIsRefused(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		wantError(w, c.WithLock(w.Context(), "key", nil), asynclock.ErrInvalidOption)
		wantError(w, errOf(asynclock.Do[int](w.Context(), c, "key", nil)), asynclock.ErrInvalidOption)
		w.wantUnused()
	})
}

// Go vet reports a copied lease.
func TestVetRefusesACopiedLease(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "vet", "./testdata/copied").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "copies lock value") {
		t.Errorf("go vet of a copied lease: %v\n%s", err, out)
	}
}

// Two keys that are one lock in the store are one key in the client, whichever was used first.
func TestTwoSpellingsAreOneKey(t *testing.T) {
	story(t, func(w *world) {
		c := w.clientOf(altered{Store: w.store, spelled: strings.ToLower, listed: func(info store.Info) (store.Info, error) {
			info.Key = strings.ToUpper(info.Key) // as another program has written it
			return info, nil
		}})
		all, err := c.LockAll(w.Context(), []string{"KEY", "key", "Other", "OTHER"})
		if err != nil {
			w.Fatal(err)
		}
		if got := all.Keys(); !slices.Equal(got, []string{"key", "other"}) || all.Token("KEY") == 0 || all.Token("KEY") != all.Token("key") {
			w.Errorf("LockAll: got keys %q with tokens %v, want each once", got, all.Tokens())
		}
		wantError(w, errOf(c.TryLock(w.Context(), "kEY")), asynclock.ErrHeld)
		wantError(w, errOf((<-c.LockChan(w.Context(), "kEY", asynclock.WithWait(0))).Lease()), asynclock.ErrHeld)
		wantError(w, errOf((<-c.LockChan(all.Context(), "KEY")).Lease()), asynclock.ErrReentry)
		wantError(w, errOf(c.LockAll(all.Context(), []string{"Key"})), asynclock.ErrReentry)
		for name, find := range map[string]func(context.Context, string) (*asynclock.Lease, bool){"LeaseFrom": asynclock.LeaseFrom, "Client.LeaseFrom": c.LeaseFrom} {
			if l, ok := find(all.Context(), "KEY"); !ok || l.Key() != "key" {
				w.Errorf("%s by another spelling: got %v, want the lease", name, ok)
			}
		}
		inner, err := c.Lock(all.Context(), "KEY", asynclock.WithReentry(true))
		if err != nil || inner.Token() != all.Token("key") {
			w.Errorf("Lock of another spelling with re-entry: got %v, want it to join", err)
		}
		if info, err := c.Inspect(w.Context(), "KEY"); err != nil || !info.Mine || info.Key != "key" {
			w.Errorf("Inspect of another spelling: got %+v, %v; want it Mine", info, err)
		}
		for info, err := range c.List(w.Context(), "") {
			if err != nil || !info.Mine {
				w.Errorf("List: got %+v, %v; want it Mine", info, err)
			}
		}
		if held, err := c.ForceUnlock(w.Context(), "KEY", 0); !held || err != nil {
			w.Errorf("ForceUnlock of another spelling: got %v, %v; want true", held, err)
		}
	})
}
