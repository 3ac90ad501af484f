// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/internal/test/kit/adapterkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func lock(t *testing.T, locks *asynclock.Client, key string) *asynclock.Lease {
	t.Helper()
	lease, err := locks.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestCheckSendsNothing(t *testing.T) {
	t.Parallel()
	store := asynclocktest.New()
	locks := adapterkit.NewClient(t, store)
	var none *asynclock.Client
	for name, tt := range map[string]struct {
		request Request
		key     string
		option  asynclock.LockOption
		want    error
	}{
		"well":             {locks.Lock, "key", asynclock.WithWait(time.Second), nil},
		"no client":        {none.Lock, "key", asynclock.WithTTL(time.Second), asynclock.ErrInvalidOption},
		"no key":           {locks.Lock, "", asynclock.WithTTL(time.Second), asynclock.ErrInvalidKey},
		"a bad option":     {locks.Lock, "key", asynclock.WithTTL(0), asynclock.ErrInvalidOption},
		"a TryLock's wait": {locks.TryLock, "key", asynclock.WithWait(time.Second), asynclock.ErrInvalidOption},
	} {
		if err := Check(tt.request, tt.key, []asynclock.LockOption{tt.option}); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
	if calls := store.Calls(nil); len(calls) > 0 {
		t.Errorf("got requests %v, want none", calls)
	}
}

func TestUnlockReturnsWhatTheLeaseDidNotCover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := asynclocktest.New()
		locks := adapterkit.NewClient(t, store)
		for name, tt := range map[string]struct {
			trouble func(key string)
			want    error
		}{
			"well":     {func(string) {}, nil},
			"no reply": {func(key string) { store.Every(asynclocktest.Release.On(key), asynclocktest.Refuse) }, nil},
			"lost": {func(key string) {
				if _, err := store.Expire(t.Context(), key); err != nil {
					t.Error(err)
				}
			}, asynclock.ErrLost},
		} {
			lease := lock(t, locks, name)
			tt.trouble(name)
			if err := Unlock(t.Context(), lease); !errors.Is(err, tt.want) {
				t.Errorf("%s: got %v, want %v", name, err, tt.want)
			}
		}
		covered := lock(t, locks, "closed")
		abandoned, abandon := context.WithTimeout(t.Context(), time.Second)
		defer abandon()
		_ = locks.Close(abandoned) // says that a lease is left
		if err := Unlock(t.Context(), covered); !errors.Is(err, asynclock.ErrClosed) {
			t.Errorf("closed: got %v, want ErrClosed", err)
		}
	})
}

func TestNotBegun(t *testing.T) {
	t.Parallel()
	for want, errs := range map[bool][]error{
		true: {
			&asynclock.HeldError{Key: "key"}, asynclock.ErrQueueFull, asynclock.ErrUnreachable, asynclock.ErrGrace,
			asynclock.ErrTooSlow, asynclock.ErrOutcomeUnknown,
		},
		false: {
			nil, asynclock.ErrDenied, asynclock.ErrClosed, asynclock.ErrForeignData, asynclock.ErrInvalidKey,
			asynclock.ErrInvalidOption, asynclock.ErrUnsupported, asynclock.ErrLost, context.Canceled,
		},
	} {
		for _, err := range errs {
			if got := NotBegun(fmt.Errorf("in another: %w", err)); got != want {
				t.Errorf("%v: got %t, want %t", err, got, want)
			}
		}
	}
}

func TestLeasesAreTakenInTheirOrder(t *testing.T) {
	t.Parallel()
	locks := adapterkit.NewClient(t, asynclocktest.New())
	first, second, other := lock(t, locks, "a"), lock(t, locks, "b"), lock(t, locks, "c")
	defer other.Unlock(t.Context())
	defer second.Unlock(t.Context())
	defer first.Unlock(t.Context())
	var leases Leases
	if got, _ := leases.Oldest("name"); got != nil || leases.Take("name") != nil || leases.Replace("name", first, second) {
		t.Error("the zero Leases have a lease")
	}
	leases.Add("other", other)
	leases.Add("name", first)
	if got, alone := leases.Oldest("name"); got != first || !alone {
		t.Errorf("got %v, alone %t, want the one lease, alone", got, alone)
	}
	leases.Add("name", second)
	if got, alone := leases.Oldest("name"); got != first || alone {
		t.Errorf("got %v, alone %t, want the first of two", got, alone)
	}
	if got := leases.Take("name"); got != first {
		t.Errorf("got %v, want the oldest lease", got)
	}
	if leases.Replace("name", first, other) || !leases.Replace("name", second, first) {
		t.Error("Replace: want it to find the second lease, and not the first")
	}
	if got := leases.Take("name"); got != first {
		t.Errorf("got %v, want what it was replaced by", got)
	}
	if leases.Take("name") != nil || leases.Take("other") != other || len(leases.held) != 0 {
		t.Errorf("got %v left, want nothing", leases.held)
	}
}
