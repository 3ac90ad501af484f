// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// A subscription is never ended by UNSUBSCRIBE. rueidis 1.0.79 writes a PING behind that, and pairs the two with their
// answers by their texts. Where the server refuses both, as it does with BUSY in a long script, rueidis panics in a
// goroutine of its own, or takes the second answer for that of the next command. docs/upstream/rueidis.md has more.
//
// So a subscription that nobody needs any more is left behind on its connection. A connection of our own is ended when
// it has no others, or very many of those. QUIT is answered once, whatever the answer is. Others on the connection then
// subscribe again by themselves, and their owners ask for what they may have missed. On an application's client, and over
// RESP2, a subscription stays as long as its connection: over RESP2, rueidis never replaces that.

const (
	// leftBehind is how many subscriptions may be left behind beside others. Observers leave no more than a channel for
	// each of 256 buckets, and the rest is for the channels of clients.
	leftBehind = 1280
	// quitWithin is how long to wait for the answer to QUIT. Until the answer comes, nobody reads the messages that still
	// arrive. After some of them rueidis stops reading that connection, which others use too, and then the answer
	// never comes. The server ends the connection all the same.
	quitWithin = 100 * time.Millisecond
)

// Receive subscribes as the command says and stays subscribed until ctx ends, as [pubsub.Source] describes. rueidis
// subscribes again by itself after a lost connection. The result is nil if the server ends the subscription, as it does
// when a slot moves to another node.
func (c *Conn) Receive(ctx context.Context, subscribe rueidis.Completed, confirmed func(rueidis.PubSubSubscription), deliver func(rueidis.PubSubMessage)) (err error) {
	defer Recovered(&err)
	name := strings.Join(subscribe.Commands(), " ")
	c.subscribed.add(name)
	var there atomic.Bool // the present connection has the subscription
	left := false
	defer func() {
		if !left {
			c.subscribed.remove(name)
		}
	}()
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		there.Store(true)
		confirmed(s)
	})
	ctx = rueidis.WithOnReceiveReturnHook(ctx, func(err error, conn rueidis.CommandClient) error {
		if there.Swap(false) && ctx.Err() != nil {
			left = true
			if c.subscribed.leave(name) && c.quit(conn) {
				c.subscribed.forget()
			}
		}
		return err
	})
	return c.Inboxes.Receive(ctx, subscribe, deliver)
}

// FindPrimary makes the client that subscribes look for the primary of a key, if it knows an old one.
func (c *Conn) FindPrimary(ctx context.Context, key string) {
	var err error
	defer Recovered(&err)
	c.Inboxes.Do(ctx, c.Inboxes.B().Exists().Key(key).Build())
}

// quit ends a connection, if it is ours and may be ended. It reports whether the server has agreed.
func (c *Conn) quit(conn rueidis.CommandClient) bool {
	if !c.owned {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), quitWithin)
	defer cancel()
	return c.speaksRESP3(ctx) && conn.Do(ctx, conn.B().Quit().Build()).Error() == nil
}

// speaksRESP3 asks on another connection, because rueidis does not understand this answer on one with subscriptions over
// RESP2. It remembers the answer.
func (c *Conn) speaksRESP3(ctx context.Context) bool {
	if c.resp3.Load() {
		return true
	}
	answer, err := c.Do(ctx, c.Commands.B().Hello().Build()).ToMessage()
	if err != nil || !answer.IsMap() {
		return false
	}
	c.resp3.Store(true)
	return true
}

// subscriptions are those of a Conn, by what subscribes to them.
type subscriptions struct {
	mu   sync.Mutex
	used map[string]int
	left map[string]struct{} // left behind since a connection was ended
}

func (s *subscriptions) add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == nil {
		s.used, s.left = make(map[string]int), make(map[string]struct{})
	}
	s.used[name]++
	delete(s.left, name)
}

func (s *subscriptions) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(name)
}

// removeLocked reports whether that was the last of its name.
func (s *subscriptions) removeLocked(name string) (last bool) {
	if s.used[name]--; s.used[name] > 0 {
		return false
	}
	delete(s.used, name)
	return true
}

// leave leaves one behind. It reports whether its connection is to be ended.
func (s *subscriptions) leave(name string) (end bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removeLocked(name) {
		s.left[name] = struct{}{}
	}
	return len(s.used) == 0 || len(s.left) > leftBehind
}

// forget forgets what was left behind, on all connections of a Cluster: what was left elsewhere counts no more.
func (s *subscriptions) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.left)
}
