// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
)

// Nothing was sent when a first connection fails: the error is never that the outcome is unknown.
func TestWhatIsNotOpenedIsUnreachable(t *testing.T) {
	t.Parallel()
	var c Conn
	c.dialed.tried.Store(true)
	for _, err := range []error{context.DeadlineExceeded, errors.New("odd"), &unsent{errors.New("a dialer's")}, fmt.Errorf("x509: %w", net.ErrClosed)} {
		if got := c.unopened(err); !errors.Is(got, store.ErrUnreachable) || errors.Is(got, store.ErrOutcomeUnknown) {
			t.Errorf("%v: got %v, want ErrUnreachable", err, got)
		}
	}
	if _, err := Open(rueidis.ClientOption{}); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("no address: got %v, want ErrInvalidOption", err)
	}
}

// A handshake, and a dialer of the application's, may fail with any error. The end of a context of theirs is not that of
// the caller's.
func TestADialThatFailsHasSentNothing(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{errors.New("tls: certificate required"), context.DeadlineExceeded} {
		var c Conn
		dial := c.dialed.dialer(func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return nil, cause })
		_, err := dial(t.Context(), "127.0.0.1:1", new(net.Dialer), nil)
		if got := c.Failure(err); !errors.Is(got, store.ErrUnreachable) || errors.Is(got, store.ErrOutcomeUnknown) {
			t.Errorf("%v: got %v, want ErrUnreachable", cause, got)
		}
	}
}
