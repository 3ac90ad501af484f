// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A subscription is never ended by UNSUBSCRIBE. rueidis 1.0.79 writes a PING behind that, and pairs the two with their
// answers by their texts. Where the server refuses both, as it does with BUSY in a long script, rueidis panics in a
// goroutine of its own, or takes the second answer for that of the next command. docs/upstream/rueidis.md has more.
//
// So a subscription that nobody needs any more is left behind on its connection. A connection of our own is ended when
// it has no others, or many of those. QUIT is answered once, whatever the answer is. Others on the connection then
// subscribe again by themselves. On an application's client, and over
// RESP2, a subscription stays as long as its connection.

const (
	// leftBehind is how many subscriptions may be left behind beside fewer that are in use.
	leftBehind = 32
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
	left := false
	defer func() {
		if !left {
			c.subscribed.remove(name)
		}
	}()
	ctx = rueidis.WithOnSubscriptionHook(ctx, confirmed)
	ctx = rueidis.WithOnReceiveReturnHook(ctx, func(err error, conn rueidis.CommandClient) error {
		if ctx.Err() != nil {
			left = true
			if c.subscribed.leave(name) && c.owned {
				quit(conn)
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

// quit ends a connection, unless it is refused. Over RESP2, rueidis would never replace it; there PING is answered by a list
// where there are subscriptions.
func quit(conn rueidis.CommandClient) {
	ctx, cancel := context.WithTimeout(context.Background(), quitWithin)
	defer cancel()
	if pong, err := conn.Do(ctx, conn.B().Ping().Build()).ToString(); err == nil && pong == "PONG" {
		conn.Do(ctx, conn.B().Quit().Build()) // should it fail, so does the connection
	}
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
	if len(s.used) > 0 && len(s.left) <= max(leftBehind, len(s.used)) {
		return false
	}
	clear(s.left)
	return true
}
