// SPDX-License-Identifier: Apache-2.0

// Package pubsub keeps one subscription alive and proves that it is.
//
// An [Inbox] subscribes to one channel of a [Source], subscribes again whenever
// that ends, and hands each message to a [Handler]. It is meant for messages
// that are hints: something has changed, go and look. Such a hint may be lost
// as long as the receiver learns that hints may have been lost, and that is
// what an inbox is about.
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
// An acknowledged SUBSCRIBE shows little: a proxy may accept it and forward
// nothing, an access rule may forbid the publishing, the two ends may sit on
// different servers after a failover, the connection may be dead without either
// end having noticed. So an inbox believes only in what came back. After each
// acknowledgement it publishes a probe to its own channel, [ProbePrefix] and 128
// random bits, and is live from the moment that very probe arrives.
//
//	           confirmed          probe arrives
//	subscribing ───▶ proving ─────────────────────▶ live ──▶ Up
//	     │ 5 s          │ 2 s       confirmed again   │
//	     │              │ ◀── or 5 to 10 s later ─────┘ stays live meanwhile
//	     ▼              ▼
//	   Down, or still down: back-off, then subscribe again
//
// While live it proves itself anew every 5 to 10 s. An acknowledgement that does
// not come within 5 s, a probe that can't be published or does not come back
// within 2 s, and the end of [Source].Receive for whatever reason end the
// subscription. The next one follows after a pause of up to 100 ms, which
// doubles to up to 30 s while subscriptions fail or stay live for less than 2 s.
// Of each pause the second half is random, so that clients of a server that came
// back do not all return at the same moment.
//
// # What a receiver may conclude
//
// The three functions of the handler are called one at a time, in the order of
// the queue that a goroutine of its own empties. Up stands in that queue where
// the probe arrived between the messages.
//
//   - Up says: whatever was published until now may have been lost. Look at
//     everything once. What is published after Up was called is passed to
//     Message, or the inbox finds out that it may not have been, and then
//     another Up follows as soon as it is live again.
//   - So a receiver that looks after each Up, and at each message, misses
//     nothing for ever, with the one exception below.
//   - Up comes when the inbox becomes live, after each acknowledgement that
//     follows (the source reconnected by itself, and there was a gap), and after
//     an overflow. Acknowledgements that overtake their probes share one Up.
//     Between an Up and the next there need not be a Down.
//   - Down comes once per outage, with the reason that began it. An inbox that
//     can't become live in the first place is in its first outage.
//   - Messages may come at any time, also before the first Up and between Down
//     and Up, and are as good as others. Their order and number is the source's
//     affair: one that is delivered twice is passed on twice.
//
// A subscription that has silently died is noticed within 12 s: 10 s until the
// next probe, 2 s for its way. Until then, and for the 2 s after the source has
// reconnected, Live may still say yes. These times are of the process's own
// monotonic clock: one that is stopped notices when it runs again.
//
// # Slow receivers
//
// What the source delivers goes into a queue of 1024 entries; the source is
// never kept waiting. When the queue is full, all that is in it is dropped in
// favor of what is true now: Up if the inbox is live, which tells the receiver
// to look, or else the Down that it has not heard of yet. An outage that began
// and ended in the dropped part is not reported.
//
// # What is not guaranteed
//
//   - A server that drops single messages of a subscription that works, without
//     ending it, goes unnoticed unless it drops a probe. Nothing but polling
//     helps.
//   - No Up may ever come: where pub-sub is not to be had, the inbox says Down,
//     once, and tries for ever. Nobody may wait for a message without a timer.
//   - The handler trails: when Up or Down is called, [Inbox.Live] may have moved
//     on already.
//   - The prefix of probes is no protection from those who can publish to the
//     channel. They can send whatever they like, except a probe they have not
//     seen.
//   - Panics are not caught. One in the handler or the source ends the program.
//
// # Cost
//
// Two goroutines per inbox, of which one is in [Source].Receive; a third while a
// probe is being published. One PUBLISH to itself each 5 to 10 s.
//
// # Reading the code
//
// inbox.go has the life of an inbox, subscription.go that of one subscription, with
// its proof and its timers, and queue.go what a slow handler leaves unheard.
package pubsub
