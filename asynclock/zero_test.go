// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

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
		_, err := asynclock.Do[int](w.Context(), c, "key", nil)
		wantError(w, err, asynclock.ErrInvalidOption)
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
