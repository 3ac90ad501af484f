// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// TestSuperviseStartsNothingTooLate: what ends a command also ends one that has not
// been started yet.
func TestSuperviseStartsNothingTooLate(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	client, err := asynclock.New(store)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(t.Context())
	cases := []struct {
		name string
		prep func(*testing.T, *asynclock.Lease, chan<- os.Signal)
		code int
	}{
		{"interrupted", func(_ *testing.T, _ *asynclock.Lease, signals chan<- os.Signal) { signals <- os.Interrupt }, exitSignal + 2},
		{"lost", func(t *testing.T, lease *asynclock.Lease, _ chan<- os.Signal) {
			if _, err := client.ForceUnlock(t.Context(), lease.Key(), 0); err != nil {
				t.Fatal(err)
			}
			<-lease.Done()
		}, exitLost},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			lease, err := client.TryLock(t.Context(), c.name)
			if err != nil {
				t.Fatal(err)
			}
			defer lease.Unlock(t.Context())
			signals := make(chan os.Signal, 16)
			c.prep(t, lease, signals)
			cmd := exec.Command(os.Args[0], "-test.run=^$") // were it run, it would do no harm
			err = (&app{messages: &messages{out: io.Discard}}).supervise(t.Context(), cmd, lease, 0, signals)
			if err == nil || exitCode(err) != c.code {
				t.Errorf("got %v, want an error with exit code %d", err, c.code)
			}
			if cmd.Process != nil {
				t.Error("the command was started")
			}
			if c.name == "lost" && !errors.Is(err, asynclock.ErrForced) {
				t.Errorf("got %v, want the reason of the loss", err)
			}
		})
	}
}
