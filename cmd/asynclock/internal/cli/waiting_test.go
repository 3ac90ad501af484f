// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// TestWaitReport: nothing for a second, then each reason once, until the wait is over.
func TestWaitReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		held := func(token int64) asynclock.Info {
			return asynclock.Info{Held: true, Holder: "host\x1b", Token: token, Waiters: 1}
		}
		answers := []struct {
			info asynclock.Info
			err  error
		}{
			{info: held(1)},
			{info: held(1)},
			{info: held(2)},
			{err: asynclock.ErrUnreachable},
			{err: asynclock.ErrOutcomeUnknown},
			{err: errors.New("another")},
			{},
			{info: asynclock.Info{Waiters: 2}},
			{info: held(2)},
		}
		var said []string
		n := 0
		ctx, cancel := context.WithCancel(t.Context())
		w := waitReport{
			key: "k",
			inspect: func(ctx context.Context, _ string) (asynclock.Info, error) {
				if n == len(answers) { // it hangs
					<-ctx.Done()
					return asynclock.Info{}, ctx.Err()
				}
				n++
				return answers[n-1].info, answers[n-1].err
			},
			say: func(format string, args ...any) {
				said = append(said, fmt.Sprintf("%v ", time.Since(start))+fmt.Sprintf(format, args...))
			},
		}
		done := make(chan struct{})
		go func() { // ends with ctx; waited for below
			defer close(done)
			w.run(ctx)
		}()
		time.Sleep(101 * time.Second) // its last look has begun a second before
		cancel()
		<-done
		want := []string{
			`1s waiting for "k": held by "host\x1b" (token 1)`,
			`21s waiting for "k": held by "host\x1b" (token 2)`,
			`31s waiting for "k": the server can't be reached, or does not answer`,
			`1m11s waiting for "k": nobody holds it, but the server grants nothing yet, as after its start or its promotion`,
			`1m21s waiting for "k": held by "host\x1b" (token 2)`,
			`1m33s waiting for "k": the server can't be reached, or does not answer`,
		}
		if !slices.Equal(said, want) {
			t.Errorf("got\n%q, want\n%q", said, want)
		}
	})
}

// TestWaitReportEndsWithTheWait: what is found after that is not said.
func TestWaitReportEndsWithTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), silence)
		defer cancel()
		w := waitReport{
			inspect: func(ctx context.Context, _ string) (asynclock.Info, error) {
				<-ctx.Done()
				return asynclock.Info{}, ctx.Err()
			},
			say: func(format string, args ...any) { t.Errorf("got "+format+", want nothing", args...) },
		}
		w.run(ctx)
	})
}
