// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// Receive has begun on a channel.
type hearing struct {
	confirmed chan struct{}
	delivered chan string
	ended     chan error
	leave     context.CancelFunc
}

func listenTo(t *testing.T, d *driver, name string) *hearing {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	h := &hearing{make(chan struct{}), make(chan string, 16), make(chan error, 1), cancel}
	go func() { // ends with the test
		h.ended <- d.Receive(ctx, redisdriver.Channel{Name: name}, func() { close(h.confirmed) }, func(text string) { h.delivered <- text })
	}()
	return h
}

// within returns what comes from a channel soon.
func within[T any](t *testing.T, what string, c <-chan T) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("got nothing, want " + what)
	}
	return got
}

// listeners is how many connections of a server wait for messages.
func listeners(t *testing.T, sv *servers.Redis) int {
	t.Helper()
	text, err := sv.Text(t.Context(), "CLIENT", "LIST", "TYPE", "pubsub")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(text, "id=")
}

// However many keys are observed, there is one connection for messages to a server.
func TestObserversShareAConnection(t *testing.T) {
	t.Parallel()
	sv, client := startWith(t, func(o *redis.Options) { o.MaxActiveConns = 5 })
	locks, err := asynclock.New(newStore(t, client), asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close(context.Background())
	for i := range 300 {
		stop, err := locks.Observe(fmt.Sprint("key", i), asynclock.Observer{})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	kit.Eventually(t, "all buckets are subscribed to", func() bool {
		names, err := client.PubSubChannels(t.Context(), "*:o").Result()
		return err == nil && len(names) > 150
	})
	if got := listeners(t, sv); got != 1 {
		t.Errorf("got %d connections for messages, want 1", got)
	}
}

// A channel that the server refuses ends its own subscription, and no other on the connection.
func TestARefusedChannelEndsNoOther(t *testing.T) {
	t.Parallel()
	sv, client := startWith(t, func(o *redis.Options) { o.Username, o.Password = "user", "secret" })
	if err := sv.Do(t.Context(), "ACL", "SETUSER", "user", "on", ">secret", "~*", "+@all", "resetchannels", "&good*"); err != nil {
		t.Fatal(err)
	}
	d := newDriverOf(t, client)
	good := listenTo(t, d, "good")
	within(t, "a subscription", good.confirmed)
	bad, better := listenTo(t, d, "bad"), listenTo(t, d, "good2")
	if err := within(t, "an error", bad.ended); !errors.Is(d.Failure(err), store.ErrDenied) {
		t.Errorf("got %v, want ErrDenied", err)
	}
	within(t, "another subscription", better.confirmed)
	better.leave()
	if err := within(t, "an end", better.ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	if _, err := d.Publish(t.Context(), redisdriver.Channel{Name: "good"}, "text"); err != nil {
		t.Fatal(err)
	}
	if got := within(t, "a message", good.delivered); got != "text" || listeners(t, sv) != 1 {
		t.Errorf("got %q and %d connections, want the text and one", got, listeners(t, sv))
	}
	kit.Eventually(t, "nobody hears what nobody listens to", func() bool {
		n, err := d.Publish(t.Context(), redisdriver.Channel{Name: "good2"}, "text")
		return n == 0 && err == nil
	})
	good.leave()
	kit.Eventually(t, "the connection ends with its last subscription", func() bool { return listeners(t, sv) == 0 })
}

// A connection for messages that is dead without a sign ends with the first subscription that it does not answer.
func TestADeadConnectionForMessagesEnds(t *testing.T) {
	t.Parallel()
	wall := new(firewall)
	_, client := startWith(t, func(o *redis.Options) { o.Dialer = wall.dial })
	d := newDriverOf(t, client)
	first := listenTo(t, d, "first")
	within(t, "a subscription", first.confirmed)
	wall.forget()
	second := listenTo(t, d, "second")
	for _, h := range []*hearing{first, second} {
		if err := within(t, "an end", h.ended); !errors.Is(err, errSilent) {
			t.Errorf("got %v, want errSilent", err)
		}
	}
	third := listenTo(t, d, "third")
	within(t, "a subscription on a connection that works", third.confirmed)
}

// A lost connection ends all its subscriptions. go-redis does not dial by itself.
func TestALostConnectionForMessagesEnds(t *testing.T) {
	t.Parallel()
	wall := new(firewall)
	sv, client := startWith(t, func(o *redis.Options) { o.Dialer = wall.dial })
	d := newDriverOf(t, client)
	first, second := listenTo(t, d, "first"), listenTo(t, d, "second")
	within(t, "a subscription", first.confirmed)
	within(t, "a subscription", second.confirmed)
	if err := sv.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub"); err != nil {
		t.Fatal(err)
	}
	for _, h := range []*hearing{first, second} {
		if err := within(t, "an end", h.ended); err == nil {
			t.Error("got no error, want one")
		}
	}
	if got := wall.forget(); got != 1 {
		t.Errorf("got %d connections, want the one that was lost", got)
	}
}

// A sharded message that nobody receives is no failure.
func TestAShardedMessageIsSent(t *testing.T) {
	t.Parallel()
	client := clientAt(t, "ASYNCLOCK_CLUSTER_URL")
	if !sharded(t, client) {
		t.Skip("this server has no sharded pub-sub, which came with Redis 7")
	}
	if n, err := newDriverOf(t, client).Publish(t.Context(), redisdriver.Channel{Name: "channel", Sharded: true}, "text"); n != 0 || err != nil {
		t.Errorf("got %d, %v, want none and no error", n, err)
	}
}
