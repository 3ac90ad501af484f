// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
)

// A Conn is how a store reaches its deployment, until it is closed.
type Conn struct {
	Commands rueidis.Client // runs the scripts
	Inboxes  rueidis.Client // holds the subscriptions; may be the same
	owned    bool           // Close closes both

	closed atomic.Bool
}

// Open connects with two clients of the store's own, one for commands and one for
// messages, so that nothing else delays a renewal or a message. Both are set up by
// [ForLocks]. Errors are those of asynclock.
func Open(option rueidis.ClientOption) (*Conn, error) {
	option = ForLocks(option)
	commands, err := rueidis.NewClient(option)
	if err != nil {
		return nil, Classify(err)
	}
	inboxes, err := rueidis.NewClient(option)
	if err != nil {
		commands.Close()
		return nil, Classify(err)
	}
	return &Conn{Commands: commands, Inboxes: inboxes, owned: true}, nil
}

// Share uses the application's own client, which Close leaves open.
func Share(client rueidis.Client) (*Conn, error) {
	if client == nil {
		return nil, fmt.Errorf("%w: nil client", store.ErrBadOption)
	}
	return &Conn{Commands: client, Inboxes: client}, nil
}

// Close closes what [Open] has opened. It reports whether this was the first call.
func (c *Conn) Close() (first bool) {
	if c.closed.Swap(true) {
		return false
	}
	if c.owned {
		c.Commands.Close()
		c.Inboxes.Close()
	}
	return true
}

// Closed reports whether Close was called.
func (c *Conn) Closed() bool { return c.closed.Load() }

// Cluster reports whether the deployment is one, and is used as one.
func (c *Conn) Cluster() bool { return c.Commands.Mode() == rueidis.ClientModeCluster }

// Failure is the error of a request whose command got no proper answer. It is final
// unless it is one of those that store.Session names.
func (c *Conn) Failure(err error) error {
	// Our own Close, not a connection that rueidis closed, as it does when Sentinel
	// names another primary.
	if c.Closed() && errors.Is(err, rueidis.ErrClosing) {
		return store.ErrClosed
	}
	return Classify(err)
}

// CheckJoin says why a client can't join: by its id, for want of somebody to tell events
// to, or because the store is closed.
func (c *Conn) CheckJoin(id string, events func(store.Event)) error {
	switch {
	case !IsField(id):
		return fmt.Errorf("%w: client id must be printable ASCII without spaces", store.ErrBadOption)
	case events == nil:
		return fmt.Errorf("%w: nil events", store.ErrBadOption)
	case c.Closed():
		return store.ErrClosed
	}
	return nil
}

// UnsubscribeWithin is how long the answer to an unsubscription is waited for. Until
// then nobody takes the messages that still come, and after some of them rueidis
// reads no further on that connection, which others use too: then the answer does not
// come at all. What was sent takes effect all the same.
const UnsubscribeWithin = 100 * time.Millisecond
