// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

func TestAGraceErrorSaysWhatItIsAndForHowLong(t *testing.T) {
	for remaining, want := range map[time.Duration]string{
		12_345 * time.Millisecond:  "12.3s",
		time.Second:                "1s",
		123_456 * time.Microsecond: "123ms",
	} {
		err := fmt.Errorf("try lock: %w", &store.GraceError{Remaining: remaining})
		if !errors.Is(err, store.ErrGrace) || !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("got %v, want it to be ErrGrace and ErrUnreachable", err)
		}
		var grace *store.GraceError
		if !errors.As(err, &grace) || grace.Remaining != remaining {
			t.Errorf("got %+v, want a GraceError of %v", grace, remaining)
		}
		want := "try lock: asynclock: the server was started or promoted lately, and grants nothing for " + want + " yet"
		if got := err.Error(); got != want {
			t.Errorf("text: got %q, want %q", got, want)
		}
	}
	if errors.Is(store.ErrUnreachable, store.ErrGrace) {
		t.Error("ErrUnreachable: got that it is ErrGrace, want that it is not")
	}
}
