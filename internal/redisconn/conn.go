// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
)

// A Conn is a store's connection to its deployment, until it is closed.
type Conn struct {
	Commands rueidis.Client        // runs the scripts, by Do and DoMulti
	Inboxes  rueidis.Client        // holds the subscriptions; may be the same
	owned    bool                  // Close closes both
	dialed   dialed                // their connections, if they are owned
	option   *rueidis.ClientOption // theirs, if they are owned

	line   *line  // of Commands; nil where calls are made aside
	solo   *solo  // beside the line, for a caller that is alone; may be nil
	places places // of these calls

	subscribed subscriptions // of Inboxes
	resp3      atomic.Bool   // the server has said so

	closed atomic.Bool
}

// Open connects with two clients of the store's own, one for commands and one for messages, so that
// other traffic delays neither a renewal nor a message. [ForLocks] configures both. A single server
// gets a third one when calls follow each other closely: see solo. The errors are those of asynclock.
func Open(option rueidis.ClientOption) (*Conn, error) { return OpenUntil(context.Background(), option) }

// OpenUntil is Open, given up when ctx ends. The error is then that of ctx.
func OpenUntil(ctx context.Context, option rueidis.ClientOption) (*Conn, error) {
	c, opened := &Conn{owned: true}, false
	stop := context.AfterFunc(ctx, c.dialed.abandon)
	defer func() {
		if stop(); !opened { // rueidis may have panicked
			c.dialed.abandon()
		}
	}()
	err := c.open(option)
	opened = err == nil
	switch {
	case !stop():
		if opened {
			c.Close()
		}
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	return c, nil
}

// CheckOption returns the ErrInvalidOption of Open that needs no answer of a server. It dials nothing.
func CheckOption(option rueidis.ClientOption) error {
	option.DialFn = nil
	option.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return nil, errNotDialed }
	c, err := Open(option)
	if err == nil { // it had nothing to dial
		c.Close()
	}
	if errors.Is(err, store.ErrInvalidOption) {
		return err
	}
	return nil
}

var errNotDialed = errors.New("redisconn: options are only examined")

// open connects both clients. If it fails, nothing stays open.
func (c *Conn) open(option rueidis.ClientOption) error {
	option = guarded(ForLocks(option))
	option.DialCtxFn = c.dialed.dialer(option.DialCtxFn)
	forCommands, l := option, newLine(1<<option.RingScaleEachConn-spare)
	forCommands.DialCtxFn = l.dialer(option.DialCtxFn)
	commands, err := rueidis.NewClient(forCommands)
	if err != nil {
		c.dialed.end()
		return c.unopened(err)
	}
	inboxes, err := rueidis.NewClient(option)
	if err != nil {
		c.dialed.end(commands)
		return c.unopened(err)
	}
	c.option = &option
	c.Commands, c.Inboxes, c.places = commands, inboxes, newPlaces(commands.Mode())
	if hasOneConnection(commands, option) {
		l.client = commands
		l.open.Store(true)
		c.line = l
		for address := range commands.Nodes() {
			c.solo = newSolo(option, address)
		}
	}
	return nil
}

// unopened translates the error of a first connection. Nothing was sent but how the connection introduces itself, and no
// caller has a context that could have ended: a server that is reached and says nothing may expect TLS, or none. Without a
// dial, the options are wrong.
func (c *Conn) unopened(err error) error {
	var reply *rueidis.RedisError
	switch {
	case !c.dialed.tried.Load():
		return fmt.Errorf("%w: %w", store.ErrInvalidOption, err)
	case rueidis.IsRedisNil(err):
		return fmt.Errorf("%w: the sentinels know no primary of this name", store.ErrUnreachable)
	case errors.As(err, &reply):
		return NotSent(Refused(reply.Error(), reply))
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("no answer; do both sides use TLS, or neither? %w", err)
	}
	return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
}

// hasOneConnection reports whether all calls of a client share one pipelined connection, which only
// they dial.
func hasOneConnection(client rueidis.Client, option rueidis.ClientOption) bool {
	return client.Mode() == rueidis.ClientModeStandalone && option.PipelineMultiplex < 0 &&
		option.AlwaysPipelining && !option.Standalone.EnableRedirect
}

// Share uses the application's own client, which Close leaves open.
func Share(client rueidis.Client) (*Conn, error) {
	if client == nil {
		return nil, fmt.Errorf("%w: nil client", store.ErrInvalidOption)
	}
	return &Conn{Commands: client, Inboxes: client, places: newPlaces(client.Mode())}, nil
}

// Close closes what [Open] has opened. It reports whether this was the first call. A server that says nothing, or a
// connection that is being made, may cost 1.2 s.
func (c *Conn) Close() (first bool) {
	if c.closed.Swap(true) {
		return false
	}
	if c.solo != nil {
		c.solo.close()
	}
	if c.owned {
		c.dialed.end(c.Commands, c.Inboxes)
	}
	return true
}

// Closed reports whether Close was called.
func (c *Conn) Closed() bool { return c.closed.Load() }

// Cluster reports whether the deployment is a Cluster and is used as one.
func (c *Conn) Cluster() bool { return c.Commands.Mode() == rueidis.ClientModeCluster }

// Sentinel reports whether the deployment is a Sentinel set and is used as one.
func (c *Conn) Sentinel() bool { return c.Commands.Mode() == rueidis.ClientModeSentinel }

// Failure returns the error of a request whose command was not answered properly. The error is
// final unless store.Session lists it as one that may be repeated.
func (c *Conn) Failure(err error) error {
	// This is our own Close. rueidis also closes connections, for example when Sentinel names
	// another primary.
	var without *unsent
	closing := errors.Is(err, rueidis.ErrClosing) || errors.As(err, &without)
	if c.Closed() && closing {
		return store.ErrClosed
	}
	return Classify(err)
}

// CheckJoin returns the reason why a client can't join: a bad id, a missing function for events, or
// a closed store.
func CheckJoin(id string, events func(store.Event), closed bool) error {
	switch {
	case !IsField(id):
		return fmt.Errorf("%w: client id must be printable ASCII without spaces", store.ErrInvalidOption)
	case events == nil:
		return fmt.Errorf("%w: nil events", store.ErrInvalidOption)
	case closed:
		return store.ErrClosed
	}
	return nil
}
