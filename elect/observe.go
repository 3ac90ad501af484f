// SPDX-License-Identifier: Apache-2.0

package elect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/internal/failure"
)

// A Leader says who leads, as the store knew it at a look. Nobody leads if Token is 0.
type Leader struct {
	Key    string
	Token  int64  // the number of the term
	Value  []byte // what the leader has proclaimed; empty until its note is written
	Holder string // the leader's description of itself
	// Until is when the term ends unless it is renewed, by this process' clock. After that nobody may lead,
	// or another. It is zero if nobody leads. It is also zero if the store knows no such time, as ZooKeeper,
	// where a term lasts as long as the session of its leader. Then the element is as old as the last look.
	Until time.Time
}

// Current looks who leads. The errors are those of [asynclock.Client.Note], and
// [asynclock.ErrUnsupported] in a store without tokens.
func Current(ctx context.Context, locks *asynclock.Client, key string) (Leader, error) {
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
		return Leader{}, err
	}
	if !n.Held {
		return Leader{Key: key}, nil
	}
	if n.HolderToken == 0 {
		return Leader{}, failed(key, fmt.Errorf("%w: terms have no numbers", asynclock.ErrUnsupported))
	}
	leader := Leader{Key: key, Token: n.HolderToken, Holder: n.Holder}
	if n.Token >= n.HolderToken { // otherwise it is from a term before
		leader.Token, leader.Value = n.Token, n.Data
	}
	if n.Remaining >= 0 {
		leader.Until = before.Add(n.Remaining)
	}
	return leader, nil
}

// Observe sends who leads: first as it is now, then each change of the term or its value that a look has found.
// The package comment says how late that may be. A slow receiver misses what was in between, and never
// the latest. The numbers of terms never go back. While the store fails, nothing is sent, and Until
// says how long the last element is good for.
//
// Observe has a goroutine, which ends with ctx, or after an error that no repetition helps. Then the channel
// is closed. If there is such an error at once, Observe returns it.
func Observe(ctx context.Context, locks *asynclock.Client, key string, options ...Option) (<-chan Leader, error) {
	s, err := newSettings(key, options)
	if err != nil {
		return nil, err
	}
	first, err := Current(ctx, locks, key)
	if failure.Final(err) {
		return nil, err
	}
	o := &observer{locks: locks, key: key, interval: s.interval, leaders: make(chan Leader, 1)}
	o.saw(first, err)
	go o.observe(ctx) // ends with ctx
	return o.leaders, nil
}

// An observer is one call of Observe.
type observer struct {
	locks    *asynclock.Client
	key      string
	interval time.Duration
	leaders  chan Leader

	any     bool   // there was a look that the store has answered
	last    Leader // of that
	highest int64  // the largest number of a term
}

func (o *observer) observe(ctx context.Context) {
	defer close(o.leaders)
	for {
		if sleep(ctx, o.pause()); ctx.Err() != nil {
			return
		}
		leader, err := Current(ctx, o.locks, o.key)
		if failure.Final(err) {
			return
		}
		o.saw(leader, err)
	}
}

// pause returns how long to wait before the next look: until the interval is over, or the term may be.
func (o *observer) pause() time.Duration {
	pause := backoff.Jitter(o.interval*9/10, 0.1)
	if left := time.Until(o.last.Until); left > 0 {
		pause = min(pause, left)
	}
	return pause
}

// saw sends what a look has found, if that is new.
func (o *observer) saw(leader Leader, err error) {
	if err != nil || leader.Token != 0 && leader.Token < o.highest {
		return
	}
	same := o.any && leader.Token == o.last.Token && leader.Holder == o.last.Holder && bytes.Equal(leader.Value, o.last.Value)
	o.any, o.last, o.highest = true, leader, max(o.highest, leader.Token)
	if same {
		return
	}
	leader.Value = bytes.Clone(leader.Value) // the receiver may change it
	select {
	case <-o.leaders: // nobody has received it
	default:
	}
	o.leaders <- leader // there is room, as nobody else sends
}
