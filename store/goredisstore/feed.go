// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// A feed is a connection for messages, which all channels of a server share. It ends when nobody listens any more, or with
// its first failure. go-redis would connect again by itself. But whoever listens does so at a better pace, and
// finds the new primary of a slot.
//
// A goroutine connects and writes, because go-redis does both under a mutex. Another one reads.
type feed struct {
	of   *feeds
	node *redis.Client
	wake chan struct{} // has an element when there may be something to do

	// All of this is guarded by of.mu.
	listeners map[string]map[*listener]struct{} // by channel
	orders    []*order                          // to be written
	sent      []*order                          // to be answered, which the server does in this order
	since     time.Time                         // when the first of them was written, or the one before it was answered
	over      bool
	err       error // why
}

// A listener is a Receive under way.
type listener struct {
	channel   redisdriver.Channel
	confirmed func()
	deliver   func(string)

	hears bool // the server has confirmed; guarded as the feed
	ended bool
	end   chan error // gets the reason, unless the listener has left before
}

// An order is a subscription that is begun, or ended.
type order struct {
	listener *listener
	leaves   bool
}

// feeds are those of a store, one for each server.
type feeds struct {
	life    context.Context //nolint:containedctx // of the feeds
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex // is held for moments
	open  map[*redis.Client]*feed
	ended bool
}

func newFeeds() *feeds {
	fs := &feeds{open: make(map[*redis.Client]*feed)}
	fs.life, fs.cancel = context.WithCancel(context.Background())
	return fs
}

// endsWithin is how long the end of the feeds is waited for. A function of the application may hang.
const endsWithin = time.Second

// end ends all. Their client has been closed.
func (fs *feeds) end() {
	fs.cancel()
	fs.mu.Lock()
	fs.ended = true
	fs.mu.Unlock()
	none := make(chan struct{})
	go func() { // ends with the feeds
		fs.running.Wait()
		close(none)
	}()
	limit := time.NewTimer(endsWithin)
	defer limit.Stop()
	select {
	case <-none:
	case <-limit.C:
	}
}

var (
	errSilent  = errors.New("goredisstore: the server did not answer on the connection for messages")
	errOneDial = errors.New("goredisstore: the connection for messages has ended")
)

// greetWithin is how long it may take to connect, and to write. A subscription that takes longer is given up in any case.
const greetWithin = 5 * time.Second

// listen listens until ctx ends, or the server or a failure ends the subscription.
func (fs *feeds) listen(ctx context.Context, node *redis.Client, l *listener) error {
	l.end = make(chan error, 1)
	f := fs.join(node, l)
	if f == nil {
		return redis.ErrClosed
	}
	select {
	case err := <-l.end:
		return err
	case <-ctx.Done():
		f.leave(l)
		return ctx.Err()
	}
}

// join returns nil at the end.
func (fs *feeds) join(node *redis.Client, l *listener) *feed {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f := fs.open[node]
	switch {
	case fs.ended:
		return nil
	case f == nil:
		f = &feed{of: fs, node: node, wake: make(chan struct{}, 1), listeners: make(map[string]map[*listener]struct{})}
		fs.open[node] = f
		fs.running.Go(f.run) // ends with the feed
	}
	name := l.channel.Name
	if f.listeners[name] == nil {
		f.listeners[name] = make(map[*listener]struct{})
	}
	f.listeners[name][l] = struct{}{}
	f.orderLocked(&order{listener: l})
	return f
}

func (f *feed) orderLocked(o *order) {
	f.orders = append(f.orders, o)
	f.wakeUp()
}

func (f *feed) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// leave takes a listener out whose context has ended.
func (f *feed) leave(l *listener) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if f.removeLocked(l) && !f.over {
		f.orderLocked(&order{listener: l, leaves: true})
	}
}

// removeLocked reports whether the listener was the last of its channel. When there are none at all, the feed is over.
func (f *feed) removeLocked(l *listener) (last bool) {
	name := l.channel.Name
	l.ended = true
	if _, ok := f.listeners[name][l]; !ok {
		return false
	}
	delete(f.listeners[name], l)
	if last = len(f.listeners[name]) == 0; last {
		delete(f.listeners, name)
	}
	if len(f.listeners) == 0 {
		f.overLocked(nil)
	}
	return last
}

// endLocked ends a subscription.
func (f *feed) endLocked(l *listener, err error) {
	if !l.ended {
		l.end <- err // there is room for one
	}
	f.removeLocked(l)
}

// overLocked makes the next listener begin another feed.
func (f *feed) overLocked(err error) {
	if !f.over {
		f.over, f.err = true, err
		delete(f.of.open, f.node)
		f.wakeUp()
	}
}

// run connects, writes, and closes the connection in the end.
func (f *feed) run() {
	var dialed atomic.Bool
	ctx, cancel := context.WithCancel(context.WithValue(f.of.life, forMessages{}, &dialed))
	defer cancel()
	s := f.node.Subscribe(ctx) // to nothing yet
	var reading sync.WaitGroup
	err := f.write(ctx, s, func() {
		reading.Go(func() { f.fail(f.read(ctx, s)) }) // ends when the connection is closed
	})
	f.fail(err)
	_ = s.Close() // fails only if it is closed
	reading.Wait()
}

// fail ends the feed, and all subscriptions.
func (f *feed) fail(err error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.overLocked(err)
	for _, listeners := range f.listeners {
		for l := range listeners {
			f.endLocked(l, f.err)
		}
	}
}

// write writes orders until the feed is over. It calls connected when it has written the first one.
func (f *feed) write(ctx context.Context, s *redis.PubSub, connected func()) (err error) {
	defer redisconn.Recovered(&err)
	silence := time.NewTimer(answerWithin)
	defer silence.Stop()
	for begun := false; ; {
		o, patience, err := f.next()
		switch {
		case err != nil:
			return err
		case o == nil:
			silence.Reset(patience)
			select {
			case <-f.wake:
			case <-silence.C:
			}
			continue
		}
		if err := f.send(ctx, s, o); err != nil {
			return err
		}
		f.written(o)
		if !begun {
			begun = true
			connected()
		}
	}
}

// errOver: nobody listens any more, or the reader has failed.
var errOver = errors.New("goredisstore: nobody listens")

// next takes an order. If there is none, it returns for how long to wait. Its error says that there will be no more.
func (f *feed) next() (o *order, patience time.Duration, err error) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	switch waited := time.Since(f.since); {
	case f.over:
		return nil, 0, errOver
	case len(f.sent) > 0 && waited >= answerWithin:
		return nil, 0, errSilent
	case len(f.orders) > 0:
		o, f.orders = f.orders[0], f.orders[1:]
		f.sent = append(f.sent, o) // the answer may come before the writing has returned
		return o, 0, nil
	case len(f.sent) > 0:
		return nil, answerWithin - waited, nil
	}
	return nil, time.Hour, nil // or until there is something to do
}

// written notes when the server could begin to answer.
func (f *feed) written(o *order) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if len(f.sent) > 0 && f.sent[0] == o {
		f.since = time.Now()
	}
}

func (f *feed) send(ctx context.Context, s *redis.PubSub, o *order) error {
	ctx, cancel := context.WithTimeout(ctx, greetWithin)
	defer cancel()
	switch ch := o.listener.channel; {
	case ch.Sharded && o.leaves:
		return s.SUnsubscribe(ctx, ch.Name)
	case ch.Sharded:
		return s.SSubscribe(ctx, ch.Name)
	case o.leaves:
		return s.Unsubscribe(ctx, ch.Name)
	default:
		return s.Subscribe(ctx, ch.Name)
	}
}

// read passes on what comes, until the connection ends.
func (f *feed) read(ctx context.Context, s *redis.PubSub) (err error) {
	defer redisconn.Recovered(&err)
	for {
		got, err := s.Receive(ctx)
		if _, refused := serverError(err); refused {
			if !f.refused(err) {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		switch m := got.(type) {
		case *redis.Message:
			for _, l := range f.hearing(m.Channel) {
				l.deliver(m.Payload)
			}
		case *redis.Subscription:
			if l := f.answered(m); l != nil {
				l.confirmed()
			}
		}
	}
}

// hearing returns who listens to a channel.
func (f *feed) hearing(channel string) (listeners []*listener) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	for l := range f.listeners[channel] {
		if l.hears {
			listeners = append(listeners, l)
		}
	}
	return listeners
}

// answeredLocked takes the order that the server has answered.
func (f *feed) answeredLocked() (o *order) {
	o, f.sent = f.sent[0], f.sent[1:]
	f.since = time.Now()
	return o
}

// answered returns who is to be told that the server has confirmed. A server may also end a subscription that nobody has
// ended, as it does when a slot moves.
func (f *feed) answered(m *redis.Subscription) *listener {
	leaves := m.Kind == "unsubscribe" || m.Kind == "sunsubscribe"
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if len(f.sent) > 0 && f.sent[0].leaves == leaves && f.sent[0].listener.channel.Name == m.Channel {
		l := f.answeredLocked().listener
		l.hears = !leaves
		if leaves || l.ended {
			return nil
		}
		return l
	}
	for l := range f.listeners[m.Channel] {
		if leaves && l.hears {
			f.endLocked(l, nil)
		}
	}
	return nil
}

// refused ends the subscription that the server has refused. It reports false if there was none.
func (f *feed) refused(err error) bool {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if len(f.sent) == 0 {
		return false
	}
	if o := f.answeredLocked(); !o.leaves {
		f.endLocked(o.listener, fmt.Errorf("goredisstore: a subscription was refused: %w", err))
	}
	return true
}
