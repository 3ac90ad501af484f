// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestWithoutLocksAProcessRendersOnce(t *testing.T) {
	for name, fault := range map[string]asynclocktest.Fault{
		"Redis can't be reached":     asynclocktest.Refuse,
		"Redis was started just now": asynclocktest.Fail(&asynclock.GraceError{Remaining: 15 * time.Second}),
		"Redis does not answer":      asynclocktest.Hang,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := asynclocktest.New()
				shared.Every(asynclocktest.Acquire.Any, fault)
				p := process{newClient(t, shared), newClient(t, memstore.New()), new(cache), nil}
				rendered := 0
				p.render = func(context.Context) (string, error) {
					rendered++
					time.Sleep(time.Second)
					return "welcome", nil
				}
				answers := make(chan error, requests)
				for range requests {
					go func() {
						_, err := p.cached(t.Context(), "home")
						answers <- err
					}()
				}
				for range requests {
					if err := <-answers; err != nil {
						t.Error(err)
					}
				}
				if rendered != 1 {
					t.Errorf("rendered %d times, want once", rendered)
				}
			})
		})
	}
}

// newClient makes a client, which is closed with the test.
func newClient(t *testing.T, st store.Store) *asynclock.Client {
	t.Helper()
	locks, err := asynclock.New(st, asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close(context.Background()) })
	return locks
}
