// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"errors"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// retainedKeyIsGivenToOthers is the same on a store that can't tell who wants a
// key, where nothing is retained.
func retainedKeyIsGivenToOthers(p *place) {
	able := p.connect(new(cable)).Features().Wanted
	ours, theirs := p.client(asynclock.WithRetention(long)), p.client()
	last := make(map[string]int64) // by key
	rises := func(l *asynclock.Lease) {
		p.Helper()
		if before := last[l.Key()]; l.Token() <= before {
			p.Errorf("token of %q: got %d after %d, want a larger one", l.Key(), l.Token(), before)
		}
		last[l.Key()] = l.Token()
		p.unlock(l)
	}
	held := func(key string) bool {
		info, err := theirs.Inspect(p.ctx, key)
		if err != nil {
			p.Fatal(err)
		}
		return info.Held
	}
	retain := func(key string) {
		p.Helper()
		rises(p.lock(ours, key))
		if able { // not the first time, if messages did not come through yet
			await(p.T, "the key to be retained", func() bool {
				rises(p.lock(ours, key))
				return held(key)
			})
		} else if held(key) {
			p.Error("the key is held after Unlock, by a client that can't be told who wants it")
		}
		for range 100 {
			rises(p.lock(ours, key))
		}
	}

	retain("key")
	start := time.Now()
	rises(p.lock(theirs, "key"))
	p.wantWithin(soon, start, "another's Lock of a retained key")

	retain("key")
	start = time.Now()
	if able {
		await(p.T, "TryLock to succeed", func() bool { // the first one does if nobody is too busy for it
			l, err := theirs.TryLock(p.ctx, "key")
			if err == nil {
				rises(l)
			} else if !errors.Is(err, asynclock.ErrHeld) {
				p.Fatal(err)
			}
			return err == nil
		})
		p.wantWithin(soon, start, "another's TryLock of a retained key")

		// Of another key, for ours may not have heard of it by the time of the next step.
		retain("forced")
		if forced, err := theirs.ForceUnlock(p.ctx, "forced"); err != nil || !forced {
			p.Errorf("ForceUnlock of a retained key: got %v, %v, want true", forced, err)
		}
		rises(p.lock(theirs, "forced"))
	}

	retain("key")
	if err := ours.Close(p.ctx); err != nil {
		p.Errorf("Close: got %v, want no error", err)
	}
	if held("key") {
		p.Error("the key is held after Close")
	}
}
