// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"context"
	"errors"
)

// ProbePrefix begins the payloads that inboxes send to themselves. A payload with this prefix is
// never passed to [Handler].Message, even if somebody else published it, so do not publish such
// payloads. The prefix is printable ASCII, which every server accepts.
const ProbePrefix = "pubsub-probe:"

// The reasons for which an inbox is down, as passed to [Handler].Down. Test with [errors.Is]. An
// error of [Source].Publish is wrapped without one of these.
var (
	// ErrNotConfirmed: the server did not acknowledge the subscription in time.
	ErrNotConfirmed = errors.New("pubsub: subscription not confirmed in time")
	// ErrNotDelivered: the server acknowledged the subscription, but a probe was not delivered in
	// time. Other messages will not be delivered either.
	ErrNotDelivered = errors.New("pubsub: subscription confirmed, but no message comes through")
	// ErrElsewhere: the server that decides who is told does not know the subscription, which is on another one, such as a
	// replica. [Source].Publish returns it. It counts even if the probe arrives, which that other server may bring about.
	ErrElsewhere = errors.New("pubsub: the subscription is on another server")
	// ErrEnded: [Source].Receive returned. Its error, if any, is wrapped too.
	ErrEnded = errors.New("pubsub: subscription ended")
)

// A Source is one channel of a pub-sub server. An [Inbox] calls Receive and
// Publish from different goroutines, but neither twice at the same time.
type Source interface {
	// Receive subscribes to the channel and stays until the subscription ends for any reason, or
	// until ctx ends. It returns the reason or nil. It may reconnect by itself, at a decent pace.
	//
	// It calls confirmed each time the server has acknowledged the subscription, also after
	// reconnecting, and before it delivers any message received after that. It calls deliver for
	// each message, in the order received. Neither function blocks, so both can be called directly
	// from a connection's reader, from any goroutine. Calls after Receive has returned do no harm.
	//
	// Receive has to return soon after ctx has ended. Until it returns, the inbox stays down and
	// [Inbox.Close] waits. The inbox does not start a second subscription beside one that does not
	// end, because it would probably hang too.
	Receive(ctx context.Context, confirmed func(), deliver func(payload string)) error

	// Publish sends payload to the channel in the same way as other clients' messages are sent. A
	// way that only probes take would prove nothing. Publish returns soon after ctx has ended. The
	// payload may have been sent even if Publish returns an error. An error that is [ErrElsewhere] ends the subscription,
	// whatever arrives.
	Publish(ctx context.Context, payload string) error
}

// A Handler receives the calls of an [Inbox]. Its functions are called one at a time, never after
// [Inbox.Close] has returned, and may take long. Meanwhile messages are queued, and dropped when
// the queue is full. Nil functions are not called. The package comment says which conclusions their
// order allows.
type Handler struct {
	// Message is called for each message.
	Message func(payload string)
	// Up is called when messages are reliable from now on and earlier ones may have been lost.
	Up func()
	// Down is called, once per outage, when messages are not reliable. The error is the reason and
	// is never nil.
	Down func(err error)
}
