// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"errors"
	"testing"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
)

// rueidis itself closes a client when Sentinel names another primary. That is not the same as our
// own Close.
func TestOnlyOurOwnCloseIsErrClosed(t *testing.T) {
	var c Conn
	if got := c.Failure(rueidis.ErrClosing); errors.Is(got, store.ErrClosed) || !errors.Is(got, store.ErrOutcomeUnknown) {
		t.Errorf("ErrClosing while open: got %v, want ErrOutcomeUnknown", got)
	}
	if !c.Close() || c.Close() {
		t.Error("Close: want true the first time only")
	}
	if got := c.Failure(rueidis.ErrClosing); !errors.Is(got, store.ErrClosed) {
		t.Errorf("ErrClosing once closed: got %v, want ErrClosed", got)
	}
}
