// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/faultconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// retainedKeyIsGivenToOthers is the same on a store that can't tell who wants a
// key, where nothing is retained.
func retainedKeyIsGivenToOthers(env *Env) {
	able := env.Connect(new(faultconn.Line)).Features().Retention
	ours, theirs := env.client(asynclock.WithRetention(long)), env.client()
	last := make(map[string]int64) // by key
	rises := func(l *asynclock.Lease) {
		env.Helper()
		if before := last[l.Key()]; l.Token() <= before {
			env.Errorf("token of %q: got %d after %d, want a larger one", l.Key(), l.Token(), before)
		}
		last[l.Key()] = l.Token()
		env.unlock(l)
	}
	held := func(key string) bool {
		info, err := theirs.Inspect(env.ctx, key)
		if err != nil {
			env.Fatal(err)
		}
		return info.Held
	}
	retain := func(key string) {
		env.Helper()
		rises(env.lock(ours, key))
		if able { // not the first time, if messages did not come through yet
			kit.Eventually(env.T, "the key to be retained", func() bool {
				rises(env.lock(ours, key))
				return held(key)
			})
		} else if held(key) {
			env.Error("the key is held after Unlock, by a client that can't be told who wants it")
		}
		for range 100 {
			rises(env.lock(ours, key))
		}
	}

	retain("key")
	start := time.Now()
	rises(env.lock(theirs, "key"))
	env.wantWithin(soon, start, "another's Lock of a retained key")

	retain("key")
	start = time.Now()
	if able {
		kit.Eventually(env.T, "TryLock to succeed", func() bool { // the first one does if nobody is too busy for it
			l, err := theirs.TryLock(env.ctx, "key")
			if err == nil {
				rises(l)
			} else if !errors.Is(err, asynclock.ErrHeld) {
				env.Fatal(err)
			}
			return err == nil
		})
		env.wantWithin(soon, start, "another's TryLock of a retained key")

		// Of another key, for ours may not have heard of it by the time of the next step.
		retain("forced")
		if forced, err := theirs.ForceUnlock(env.ctx, "forced", 0); err != nil || !forced {
			env.Errorf("ForceUnlock of a retained key: got %v, %v, want true", forced, err)
		}
		rises(env.lock(theirs, "forced"))
	}

	retain("key")
	if err := ours.Close(env.ctx); err != nil {
		env.Errorf("Close: got %v, want no error", err)
	}
	if held("key") {
		env.Error("the key is held after Close")
	}
}
