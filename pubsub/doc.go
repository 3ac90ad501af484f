// SPDX-License-Identifier: Apache-2.0

// Package pubsub keeps one subscription alive and proves that it works.
//
// An [Inbox] subscribes to one channel of a [Source], subscribes again whenever the subscription
// ends, and passes each message to a [Handler]. It is meant for messages that are hints: something
// has changed, go and look. A hint may be lost if the receiver learns that hints may have been
// lost. The inbox makes sure that it does.
//
//	inbox := pubsub.Open(source, pubsub.Handler{
//		Message: func(payload string) { look(payload) },
//		Up:      func() { lookAtEverything() },
//		Down:    func(err error) { log.Print("polling for now: ", err) },
//	})
//	defer inbox.Close(ctx)
//
// # Proof
//
// An acknowledged SUBSCRIBE proves little. A proxy may accept it and forward nothing. An access
// rule may forbid the publishing. The two ends may be on different servers after a failover. The
// connection may be dead although neither end has noticed. An inbox therefore believes only in
// messages that came back. After each acknowledgement it publishes a probe to its own channel:
// [ProbePrefix] and 128 random bits. It is live from the moment when that very probe arrives.
//
//	           confirmed          probe arrives
//	subscribing ───▶ proving ─────────────────────▶ live ──▶ Up
//	     │ 5 s          │ 2 s       confirmed again   │
//	     │              │ ◀── or 5 to 10 s later ─────┘ stays live meanwhile
//	     ▼              ▼
//	   Down, or still down: back-off, then subscribe again
//
// While an inbox is live it sends a new probe every 5 to 10 s, and when [Inbox.Prove] is called. A subscription ends for any of these
// reasons:
//
//   - An acknowledgement does not come within 5 s.
//   - A probe can't be published, or does not come back within 2 s.
//   - A probe comes back, but from another server than that which decides who is told: [ErrElsewhere].
//   - [Source].Receive returns.
//
// The next subscription follows after a pause of up to 100 ms. The pause doubles to up to 30 s
// while subscriptions fail or stay live for less than 2 s. The second half of each pause is random,
// so that the clients of a restarted server do not all return at the same moment. [Inbox.Prove] ends a pause.
//
// # Conclusions for a receiver
//
// One goroutine calls the three functions of the handler, one at a time, in the order of a queue.
// Up is queued at the moment when the probe arrived between the messages.
//
//   - Up means: all messages published until now may have been lost. Look at everything once. A
//     message published after Up was called is passed to Message, or the inbox finds out that it
//     may not have been. In that case another Up follows as soon as the inbox is live again.
//   - A receiver that looks after each Up, and at each message, therefore never misses a change for
//     ever, except in the first case under "What is not guaranteed".
//   - Up comes when the inbox becomes live, after an overflow, and after each later acknowledgement
//     (the source reconnected by itself, and there was a gap). Acknowledgements that overtake their
//     probes share one Up. There may be no Down between two Ups.
//   - Down comes once per outage, with the reason that began it. An inbox that has never been live
//     is in its first outage.
//   - Messages may come at any time, also before the first Up and between Down and Up, and are
//     equally valid. Their order and number depend on the source: a message that is delivered twice
//     is passed on twice.
//
// A subscription that has silently died is noticed within 12 s: 10 s until the next probe, 2 s for
// its way. Until then, and for 2 s after the source has reconnected, Live may still return true.
// These times are measured by the process's own monotonic clock. A stopped process notices when it
// runs again.
//
// # Slow receivers
//
// The source's messages go into a queue of 1024 entries, and the source never waits. If the queue
// is full, all of its entries are dropped. One entry with the present state replaces them: Up if
// the inbox is live, which makes the receiver look, or otherwise a Down that the receiver has not
// received yet. An outage that began and ended in the dropped part is not reported.
//
// # What is not guaranteed
//
//   - A server may drop single messages of a working subscription without ending it. The inbox
//     notices only if the server drops a probe. Only polling helps.
//   - Up may never come. If pub-sub is not available, the inbox calls Down once and tries for ever.
//     Never wait for a message without a timer.
//   - The handler trails: when Up or Down is called, [Inbox.Live] may have changed again.
//   - The prefix of probes gives no protection from clients that can publish to the channel. They
//     can send any message except a probe that they have not seen.
//   - Panics are not caught. A panic in the handler or the source ends the program.
//
// # Cost
//
// Two goroutines per inbox, one of which is in [Source].Receive. A third one runs while a probe is
// being published. One PUBLISH to itself every 5 to 10 s.
//
// # Reading the code
//
// inbox.go has the life of an inbox. subscription.go has the life of one subscription, with its
// proof and its timers. queue.go decides which calls a slow handler misses.
package pubsub
