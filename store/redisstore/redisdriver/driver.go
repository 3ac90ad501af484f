// SPDX-License-Identifier: Apache-2.0

// Package redisdriver is for authors of drivers: redisstore works by any client library for Redis that
// somebody implements [Driver] with. Package goredisstore does it with go-redis. The suite of package
// storetest says whether a driver works. A minor release may add methods to the interface.
package redisdriver

import (
	"context"
	"errors"
	"iter"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// A Driver is what a store needs of a client library for Redis. redisstore.Open and New have one by rueidis,
// redisstore.NewWith takes another. Its methods are called from any goroutine.
//
// A call returns soon after its context ends, and its error is then that of the context. No script is
// sent twice, unless the server has answered that it did not run it: a lost answer is an error.
type Driver interface {
	// Eval runs a script.
	Eval(ctx context.Context, run Run) Result
	// EvalAll runs scripts, all at once, in as few writes as it can. Those of the same slot are run in
	// this order, except that scripts which the server does not know come after the others: the requests of a
	// batch don't depend on each other. The replies are in this order, too. It ignores [Run.Ahead].
	EvalAll(ctx context.Context, runs []Run) []Result
	// GetAll returns the values of Redis keys in this order, all at once. They may be of several slots.
	GetAll(ctx context.Context, keys []string) []Result
	// Scan yields the names of all Redis keys that match a pattern, one primary after another, page by
	// page. A name may come twice. If a primary can't be reached, an error comes last, for Failure.
	Scan(ctx context.Context, pattern string) iter.Seq2[[]string, error]

	// Publish sends a message, and returns how many received it on the server that took it. If nobody
	// has received a sharded one, the driver also sees to it that the next Receive finds the primary.
	Publish(ctx context.Context, channel Channel, payload string) (receivers int64, err error)
	// Receive subscribes to a channel, as [pubsub.Source] describes. It returns nil when the server ends
	// the subscription, as it does when a slot moves, and an [ErrUnsharded] where there are no sharded
	// channels. When it has returned, nothing is delivered any more, but the server may still count
	// the subscription as a receiver, for as long as other subscriptions share its connection.
	Receive(ctx context.Context, channel Channel, confirmed func(), deliver func(payload string)) error

	// Cluster reports whether the deployment is a Cluster, and is used as one.
	Cluster() bool
	// Failure translates an error of this driver into asynclock's: ErrUnreachable if the command was
	// certainly not sent, the context's own, ErrClosed after Close, that of [ServerError] for an answer,
	// and else ErrOutcomeUnknown.
	Failure(err error) error
	// Close closes what the driver has opened. It is called once.
	Close()
}

// A Run is a script that is run once. Its slices are the caller's again when the call has returned.
type Run struct {
	Keys, Args []string
	// Ahead asks for an EXISTS of the first key, whose answer is ignored, ahead of the script in the
	// same write. redisstore's package comment says what for.
	Ahead bool

	// Script has the text in Source. A server that has run it before knows it by its SHA1.
	Script *redisconn.Script
}

// A Channel is one of pub-sub.
type Channel struct {
	Name    string
	Sharded bool // of the slot of its name
}

// ErrUnsharded is in errors of a [Driver] about a server that has no sharded pub-sub. The store then
// uses the other one.
var ErrUnsharded = errors.New("redisstore: the server has no sharded pub-sub")

// ServerError returns asynclock's error for a server's answer, such as "WRONGTYPE Operation against a
// key". The text is without a leading "ERR ". It is the only part that is shown of the cause, which
// the error wraps unless the text may quote an owner.
func ServerError(text string, cause error) error { return redisconn.Refused(text, cause) }
