// SPDX-License-Identifier: Apache-2.0

package elect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/internal/failure"
)

// A Leader says who leads, as the store knew it at a look, or as the leader has announced it. Nobody leads if Token is 0.
type Leader struct {
	Key    string
	Token  int64  // the number of the term
	Value  []byte // what the leader has proclaimed; empty until its note is written
	Holder string // the leader's description of itself
	// Until is when the term ends unless it is renewed, by this process' clock. After that nobody may lead,
	// or another. It is zero if nobody leads. It is also zero if the store knows no such time, as ZooKeeper,
	// where a term lasts as long as the session of its leader. Then the element is as old as the last look.
	Until time.Time
	// WentBack: the number is smaller than that of a term that was seen before. The store has lost data, and its
	// tokens began anew. A resource that has seen the larger one refuses this leader. Only Observe sets it.
	WentBack bool
}

// Current looks who leads. A leader that has resigned may show for up to 5 s if a plain Lock of its own client has the key
// then: the store learns of that by a renewal. The errors are those of [asynclock.Client.Note], and
// [asynclock.ErrUnsupported] in a store without tokens.
func Current(ctx context.Context, locks *asynclock.Client, key string) (Leader, error) {
	found, err := look(ctx, locks, key)
	return found.leader, err
}

// A sighting is a leader with the number of its note in the term; 0: it has none, or the store does not say.
type sighting struct {
	leader Leader
	seq    int64
}

// shortest is the rest of a TTL that a store calls 0 because it counts in milliseconds. Without it the time of a leader
// would be over at a look that has found it, and no look would follow soon.
const shortest = time.Millisecond

// look asks the store.
func look(ctx context.Context, locks *asynclock.Client, key string) (sighting, error) {
	before := time.Now()
	n, err := locks.Note(ctx, key)
	noteless := errors.Is(err, asynclock.ErrUnsupported)
	if noteless || err == nil && n.Held && n.Token < n.HolderToken { // the holder has written no note
		var info asynclock.Info
		info, err = locks.Inspect(ctx, key)
		if noteless {
			n = asynclock.Note{Held: info.Held, Holder: info.Holder, HolderToken: info.Token, Remaining: info.Remaining}
		}
		// Readers and holders of permits don't lead: there may be several of them.
		n.Held = n.Held && (!info.Held || info.Mode == asynclock.Exclusive)
	}
	if err != nil {
		return sighting{}, err
	}
	if !n.Held {
		return sighting{leader: Leader{Key: key}}, nil
	}
	if n.HolderToken == 0 {
		return sighting{}, failed(key, fmt.Errorf("%w: terms have no numbers", asynclock.ErrUnsupported))
	}
	found := sighting{leader: Leader{Key: key, Token: n.HolderToken, Holder: n.Holder}}
	if n.Token >= n.HolderToken { // otherwise it is from a term before
		found.leader.Token, found.leader.Value, found.seq = n.Token, n.Data, n.Seq
	}
	if n.Remaining >= 0 {
		found.leader.Until = before.Add(max(n.Remaining, shortest))
	}
	return found, nil
}

// Observe sends who leads: first as it is now, then each change of the term or its value that was announced, or that a
// look has found. The package comment says how late that may be. A slow receiver misses what was in between, and never
// the latest. The numbers of terms never go back, except as [Leader] says. While the store fails, nothing is sent, and
// Until says how long the last element is good for.
//
// Observe has a goroutine, which ends with ctx, or after an error that no repetition helps. Then the channel
// is closed. If there is such an error at once, Observe returns it.
func Observe(ctx context.Context, locks *asynclock.Client, key string, options ...Option) (<-chan Leader, error) {
	s, err := newSettings(key, options)
	if err != nil {
		return nil, err
	}
	o := &observer{sight: newSight(key, s.stats), locks: locks, interval: s.interval}
	o.stop, err = locks.Observe(key, asynclock.Observer{Announced: o.sight.announced, Look: o.sight.missed})
	switch {
	case errors.Is(err, asynclock.ErrUnsupported):
		o.stop = func() {} // looks have to do
	case err != nil:
		return nil, err
	}
	if err := o.look(ctx); failure.Final(err) {
		o.stop()
		o.sight.close()
		return nil, err
	}
	go o.observe(ctx) // ends with ctx
	return o.sight.leaders, nil
}

// An observer is one call of Observe.
type observer struct {
	sight    *sight
	locks    *asynclock.Client
	interval time.Duration // 0: the default
	stop     func()        // ends the announcements

	looked time.Time // when the last look began
	failed bool      // it had no answer
}

// How often an observer looks that is not told how often.
const (
	// unannounced: announcements do not come through, or a look has failed.
	unannounced = 2 * time.Second
	// announced: announcements come through. A look finds what was lost, and plain locks, which nobody announces.
	announced = asynclock.DefaultTTL
)

func (o *observer) observe(ctx context.Context) {
	defer o.sight.close()
	defer o.stop()
	for o.await(ctx) {
		if failure.Final(o.look(ctx)) {
			return
		}
	}
}

// await waits for the time of the next look. It reports whether ctx lasts.
func (o *observer) await(ctx context.Context) bool {
	regular := time.Now().Add(o.pause())
	timer := time.NewTimer(o.left(regular))
	defer timer.Stop()
	for {
		select {
		case <-o.sight.changed:
			timer.Reset(o.left(regular)) // the time of the leader may run out before
			continue
		case <-timer.C:
		case <-o.sight.asked:
			backoff.Sleep(ctx, time.Until(o.looked.Add(MinInterval))) // whoever sends messages may send many
		case <-ctx.Done():
		}
		return ctx.Err() == nil
	}
}

// pause returns how long to wait for the next look if nothing happens.
func (o *observer) pause() time.Duration {
	interval := o.interval
	switch {
	case interval != 0:
	case o.sight.isLive() && !o.failed:
		interval = announced
	default:
		interval = unannounced
	}
	return backoff.Jitter(interval*9/10, 0.1)
}

// left returns how long it is to the next look: at the regular time, or when the term may be over.
func (o *observer) left(regular time.Time) time.Duration {
	at := regular
	if due := o.sight.due(o.looked); !due.IsZero() && due.Before(at) {
		at = latest(due, o.looked.Add(MinInterval))
	}
	return time.Until(at)
}

// look looks once.
func (o *observer) look(ctx context.Context) error {
	o.looked = time.Now()
	begun := o.sight.begin()
	found, err := look(ctx, o.locks, o.sight.key)
	if o.failed = err != nil; !o.failed {
		o.sight.looked(found, begun)
	} else {
		o.sight.failed()
	}
	return err
}
