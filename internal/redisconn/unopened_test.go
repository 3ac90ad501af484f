// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"errors"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

// A server that says nothing to a first connection has ended no caller's context.
func TestAServerThatSaysNothingAtFirstIsUnreachable(t *testing.T) {
	t.Parallel()
	if err := unopened(context.DeadlineExceeded); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", err)
	}
}
