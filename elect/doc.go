// SPDX-License-Identifier: Apache-2.0

// Package elect elects a leader among any number of processes.
//
//	err := elect.Run(ctx, locks, "scheduler", func(ctx context.Context, term *elect.Term) error {
//		return schedule(ctx, term.Token()) // until ctx ends
//	})
//
// A [Term] is one leadership. It is a lease of the key, whose token is the number of the term: give it to
// whatever the leader writes to. There are three ways to lead. [Run] calls a function for each term.
// [Campaign] sends the terms to a channel, for select. An [Elector] says only whether this process leads.
//
// A term begins when its note is in the store, with the candidate's value. So observers that look later see
// it. It ends when it is resigned or lost. A campaign goes on after a loss: an outage of the store ends a term, not the
// campaign. After a term that was resigned, the candidate is behind all others that wait. Candidates of one
// client may follow each other first, for 10 ms at most. To give way and stand again, let the function of Run
// return nil. [ErrResign] leaves for good.
//
// The key is an ordinary lock's. A plain Lock of it is one more candidate, without a value. An operator
// keeps leaders out that way. Readers ([asynclock.Client.RLock]) and holders of permits keep leaders out, too, but
// to observers they don't lead: nobody does.
//
// # Observers
//
// [Observe] and [Current] say who leads. Where the store has announcements, as Redis, terms announce themselves: an
// observer is told of a new term, a new value or an end by a message, which takes as long as a message takes. It also
// looks at the store every 15 s, and as soon as the time of a leader that it knows has run out. So it sees late what
// nobody announces, or what was lost on the way:
//
//   - a leader that died: when its TTL has run out,
//   - a plain Lock of the key, or a message that was lost: by the next look, up to 15 s late.
//
// Where the store has no announcements, or they do not come through, an observer looks every 2 s. [WithInterval]
// changes how often it looks. A term that begins and ends between two looks may not be seen. The
// number of terms that are seen never goes back, unless the store has lost data ([Leader]). The knowledge of an observer proves
// nothing at a resource. Only the token does.
//
// # Counts
//
// [WithStats] counts what an election came to in this process. [Stats.Counts] says how many terms its candidates had and
// lost, and for how long its observers saw nobody lead. The time in which an observer did not know is counted apart.
//
// # Stores
//
// No term begins with a number below that of the last note. A store can have lost the tokens and kept the note, as when its
// clock was set back. Then terms begin when their numbers have passed it, or when the note has expired, after 24 hours.
// Until then nobody leads, and candidates go on trying. Fences would refuse such a leader, too.
//
// Where the store has no notes, as ZooKeeper, terms have no values ([asynclock.ErrUnsupported]). Where it has no tokens,
// terms have no numbers, and nobody can observe.
package elect
