// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"context"
	"errors"
)

// ProbePrefix begins the payloads that inboxes send to themselves. A payload
// that begins with it is never passed to [Handler].Message, whoever published
// it; so don't publish such. It is printable ASCII, which every server takes.
const ProbePrefix = "pubsub-probe:"

// Why an inbox is down, as given to [Handler].Down; test with [errors.Is]. An
// error of [Source].Publish comes wrapped, without one of these.
var (
	// ErrNotConfirmed: the server did not acknowledge the subscription in time.
	ErrNotConfirmed = errors.New("pubsub: subscription not confirmed in time")
	// ErrNotDelivered: the server acknowledged the subscription, and a probe was
	// not delivered in time. Others' messages won't be either.
	ErrNotDelivered = errors.New("pubsub: subscription confirmed, but no message comes through")
	// ErrEnded: [Source].Receive returned. If it returned an error, that one is
	// wrapped too.
	ErrEnded = errors.New("pubsub: subscription ended")
)

// A Source is one channel of a pub-sub server. An [Inbox] calls Receive and
// Publish from different goroutines, but neither twice at the same time.
type Source interface {
	// Receive subscribes to the channel and stays until the subscription ends,
	// for whatever reason (then it returns the reason or nil), or ctx does. It
	// may reconnect by itself, at a decent pace.
	//
	// It calls confirmed each time the server has acknowledged the subscription,
	// also after reconnecting, and before it delivers anything that was received
	// thereafter. It calls deliver for each message, in the order received.
	// Neither blocks, so both can be called straight from a connection's reader,
	// from any goroutine. Calls after Receive has returned do no harm.
	//
	// Receive has to return soon after ctx has ended. Until it does, the inbox
	// stays down and [Inbox.Close] waits: a second subscription beside one that
	// does not end would only be the next to get stuck.
	Receive(ctx context.Context, confirmed func(), deliver func(payload string)) error

	// Publish sends payload to the channel, on the way that the messages of
	// others take: a way that only probes take would prove nothing. It returns
	// soon after ctx has ended. Whether an error means that nothing was sent
	// doesn't matter.
	Publish(ctx context.Context, payload string) error
}

// A Handler is what an [Inbox] tells. Its functions are called one at a time,
// never after [Inbox.Close] has returned, and may take their time: meanwhile
// messages are queued, and at last dropped. Those that are nil are not called.
// The package comment says what may be concluded from their order.
type Handler struct {
	// Message is called for each message.
	Message func(payload string)
	// Up is called when messages can be counted on from now on and earlier ones
	// may have been lost.
	Up func()
	// Down is called, once per outage, when messages can't be counted on. The
	// error says why and is never nil.
	Down func(err error)
}
