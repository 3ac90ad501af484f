// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// A client whose options New can't take is refused, and the error names the field. Nothing else of them is a condition.
func TestAClientThatCantBeTakenIsRefused(t *testing.T) {
	t.Parallel()
	wantClientRefused(t, redis.NewClient(&redis.Options{Limiter: struct{ redis.Limiter }{}}), "redis.Options", "Limiter")
	for field, o := range map[string]*redis.ClusterOptions{
		"NewClient":    {NewClient: otherClient},
		"ClusterSlots": {ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return nil, nil }},
	} {
		o.Addrs = []string{"127.0.0.1:1"}
		wantClientRefused(t, redis.NewClusterClient(o), "redis.ClusterOptions", field)
	}
	for _, client := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil), redis.NewRing(new(redis.RingOptions)), wrapper{}} {
		if _, err := New(client); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("%T: got %v, want ErrInvalidOption", client, err)
		}
		if ring, ok := client.(*redis.Ring); ok && ring != nil {
			ring.Close()
		}
	}
}

// The store's clients keep its promises, whatever the application's client is for.
func TestOwnClientsKeepThePromises(t *testing.T) {
	t.Parallel()
	for _, o := range []redis.UniversalOptions{
		{},
		{ReadTimeout: -1, WriteTimeout: -2, MaxRetries: -2, PoolSize: 1, MaxActiveConns: 1, PoolTimeout: time.Hour},
		{ReadTimeout: time.Hour, MaxRetries: 9, ConnMaxIdleTime: -1, RouteRandomly: true, ReadOnly: true, RouteByLatency: true, MinIdleConns: 4},
	} {
		o.Addrs = []string{"127.0.0.1:1"}
		for _, o.IsClusterMode = range []bool{false, true} {
			client := redis.NewUniversalClient(&o)
			d := newDriverOf(t, client)
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			if d.cluster != nil && d.cluster.Options().ReadOnly {
				t.Errorf("%+v: its calls may go to replicas", o)
			}
			got := d.single
			if got == nil {
				got = d.cluster.Options().NewClient(new(redis.Options)) // a node
				defer got.Close()
			}
			own := got.Options()
			if !own.ContextTimeoutEnabled || own.MaxRetries != 0 || own.ReadTimeout != answerWithin || own.WriteTimeout != answerWithin ||
				own.PoolSize != callsAtOnce || own.MaxActiveConns != 0 || own.PoolTimeout > time.Minute || own.ConnMaxIdleTime != idleWithin || own.MinIdleConns != 0 {
				t.Errorf("%+v: got the options %+v", o, own)
			}
		}
	}
	client := redis.NewClient(&redis.Options{ReadTimeout: time.Second})
	defer client.Close()
	if got := newDriverOf(t, client).single.Options().ReadTimeout; got != time.Second {
		t.Errorf("ReadTimeout: got %v, want that of the application", got)
	}
}

// newDriverOf makes a driver that ends with the test.
func newDriverOf(t testing.TB, client redis.UniversalClient) *driver {
	t.Helper()
	d, err := newDriver(client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// A wrapper is a client of the application's own making, which is no pointer.
type wrapper struct{ redis.UniversalClient }

// otherClient makes a node's client that is not as the others.
func otherClient(o *redis.Options) *redis.Client {
	o.MaxRetries = 3
	return redis.NewClient(o)
}

func wantClientRefused(t *testing.T, client redis.UniversalClient, options, field string) {
	t.Helper()
	defer client.Close()
	_, err := New(client)
	var refusal *OptionError
	if !errors.As(err, &refusal) || refusal.Options != options || refusal.Field != field {
		t.Errorf("%s.%s: got %v, want an OptionError about it", options, field, err)
	}
}

// The store leaves the client open, and is closed itself.
func TestTheApplicationsClientStaysOpen(t *testing.T) {
	t.Parallel()
	kit.Require(t, variables[0])
	client := clientAt(t, variables[0])
	st := newStore(t, client)
	c := redistest.Join(t, st)
	st.Close()
	if got := c.Acquire(redistest.Attempt("key", "owner")).Err; !errors.Is(got, store.ErrClosed) {
		t.Errorf("Acquire: got %v, want ErrClosed", got)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("Ping: got %v, want no error", err)
	}
}

// go-redis has limits of its own, for example for a dial. Their end is not that of the caller's context.
func TestTheEndOfAnotherContextIsNotTheCallers(t *testing.T) {
	t.Parallel()
	d := new(driver)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{context.DeadlineExceeded, context.Canceled} {
		if got := d.Failure(ended(t.Context(), err)); !errors.Is(got, store.ErrOutcomeUnknown) || errors.Is(got, err) {
			t.Errorf("%v, while the context lasts: got %v, want ErrOutcomeUnknown", err, got)
		}
		if got := d.Failure(ended(over, err)); !errors.Is(got, err) {
			t.Errorf("%v, when the context has ended: got %v, want the same", err, got)
		}
	}
	dial := &unsent{context.DeadlineExceeded}
	if got := d.Failure(ended(t.Context(), dial)); !errors.Is(got, store.ErrUnreachable) {
		t.Errorf("a dial: got %v, want ErrUnreachable", got)
	}
}

// The application may close its client first. The store has connections of its own.
func TestTheApplicationMayCloseItsClientFirst(t *testing.T) {
	t.Parallel()
	_, client := startWith(t, func(*redis.Options) {})
	st := newStore(t, client)
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	redistest.Join(t, st).Hold("key", "owner")
}

// A server that forgot the scripts receives them whole, one by one and in batches.
func TestScriptsAreSentWholeToAServerThatForgotThem(t *testing.T) {
	t.Parallel()
	sv := redistest.Start(t, servers.Config{})
	client := redis.NewClient(&redis.Options{Addr: sv.Addr})
	defer client.Close()
	c := redistest.Join(t, newStore(t, client))
	for round := range 2 {
		if err := sv.Do(t.Context(), "SCRIPT", "FLUSH"); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			c.Hold("key", "owner")
			continue
		}
		for i, got := range c.Session.Acquire(t.Context(), []store.AcquireRequest{redistest.Attempt("a", "o"), redistest.Attempt("b", "o")}) {
			if got.Err != nil || got.Status != store.Granted {
				t.Errorf("request %d: got status %d, %v, want it granted", i, got.Status, got.Err)
			}
		}
	}
}

// Nothing waits for a server that is silent: neither until a deadline nor when it is canceled.
func TestACallEndsWithItsContext(t *testing.T) {
	t.Parallel()
	sv := redistest.Start(t, servers.Config{})
	client := redis.NewClient(&redis.Options{Addr: sv.Addr, ReadTimeout: time.Second})
	defer client.Close()
	c := redistest.Join(t, newStore(t, client))
	c.Hold("key", "owner")
	if err := sv.Pause(); err != nil {
		t.Fatal(err)
	}
	defer sv.Resume() //nolint:errcheck // the server ends anyway
	canceled, cancel := context.WithCancel(t.Context())
	late, done := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer done()
	time.AfterFunc(10*time.Millisecond, cancel)
	for want, ctx := range map[error]context.Context{context.Canceled: canceled, context.DeadlineExceeded: late} {
		got := c.Session.Acquire(ctx, []store.AcquireRequest{redistest.Attempt("key", "another")})[0].Err
		if !errors.Is(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

// Whether something was sent decides whether it may be said to have failed.
func TestFailuresMeanSomething(t *testing.T) {
	t.Parallel()
	d := new(driver)
	dial := &unsent{context.DeadlineExceeded}
	for _, c := range []struct{ err, want error }{
		{dial, store.ErrUnreachable},
		{&unsent{redis.Nil}, store.ErrUnreachable}, // the sentinels know no such primary
		{&unsent{reply("ERR This instance has cluster support disabled")}, store.ErrUnreachable},
		{&unsent{reply("WRONGPASS invalid username-password pair")}, store.ErrDenied},
		{&unsent{reply("ERR Client names cannot contain spaces")}, store.ErrInvalidOption},
		{redis.ErrPoolTimeout, store.ErrUnreachable},
		{redis.ErrPoolExhausted, store.ErrUnreachable},
		{redis.ErrClosed, store.ErrUnreachable},
		{context.Canceled, context.Canceled},
		{context.DeadlineExceeded, context.DeadlineExceeded},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, store.ErrOutcomeUnknown},
		{reply("READONLY You can't write against a read only replica."), store.ErrUnreachable},
		{reply("NOPERM this user has no permissions"), store.ErrDenied},
		{reply("ERR max number of clients reached"), store.ErrUnreachable},
		{reply("WRONGTYPE Operation against a key"), store.ErrForeignData},
	} {
		if got := d.Failure(c.err); !errors.Is(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.err, got, c.want)
		}
	}
	d.closed.Store(true)
	if got := d.Failure(redis.ErrClosed); !errors.Is(got, store.ErrClosed) {
		t.Errorf("after Close: got %v, want ErrClosed", got)
	}
	quoting := "ERR unknown command 'EVALSHA', with args beginning with: 'secret'"
	if got := d.Failure(reply(quoting)).Error(); strings.Contains(got, "secret") {
		t.Errorf("got %q, which quotes an owner", got)
	}
}

// A reply is a server's error.
type reply string

func (r reply) Error() string { return string(r) }
func (r reply) RedisError()   {}

// A slot may have moved since the client read the topology.
func TestASlotThatHasMovedIsFollowed(t *testing.T) {
	t.Parallel()
	d := redistest.StartCluster(t, servers.Config{}, 2)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{d.Nodes[0].Addr}})
	defer client.Close()
	c := redistest.Join(t, newStore(t, client))
	const key = "key"
	c.Hold(key, "owner")
	move(t, d)
	c.Hold(key, "another") // nothing moves with the slot
}

// A client for one server may lead to a node of a Cluster. It does not follow a slot elsewhere.
func TestANodeOfAClusterRefusesWhatIsElsewhere(t *testing.T) {
	t.Parallel()
	d := redistest.StartCluster(t, servers.Config{}, 2)
	client := redis.NewClient(&redis.Options{Addr: d.Nodes[0].Addr})
	defer client.Close()
	c := redistest.Join(t, newStore(t, client))
	refused, granted := 0, 0
	for i := range 16 {
		switch got := c.Acquire(redistest.Attempt(strconv.Itoa(i), "owner")); {
		case errors.Is(got.Err, store.ErrUnreachable):
			refused++
		case got.Err == nil && got.Status == store.Granted:
			granted++
		default:
			t.Errorf("key %d: got status %d, %v", i, got.Status, got.Err)
		}
	}
	if refused == 0 || granted == 0 {
		t.Errorf("got %d keys refused and %d granted, want some of each", refused, granted)
	}
}

// A list of an unreachable Cluster is an error, and not empty.
func TestAListNeedsTheTopology(t *testing.T) {
	t.Parallel()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer client.Close()
	var got error
	for _, err := range redistest.Join(t, newStore(t, client)).Session.List(t.Context(), "") {
		got = err
	}
	if !errors.Is(got, store.ErrUnreachable) {
		t.Errorf("got %v, want ErrUnreachable", got)
	}
}

// move gives the slot of the only key in a Cluster of two to the other node, without the key.
func move(t *testing.T, d *servers.Deployment) {
	t.Helper()
	do := func(node *servers.Redis, words ...string) string {
		text, err := node.Text(t.Context(), words...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	from, to := d.Nodes[0], d.Nodes[1]
	name := do(from, "RANDOMKEY")
	if name == "" {
		from, to = to, from
		name = do(from, "RANDOMKEY")
	}
	slot, old, id := do(from, "CLUSTER", "KEYSLOT", name), do(from, "CLUSTER", "MYID"), do(to, "CLUSTER", "MYID")
	do(from, "FLUSHALL")
	do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", old)
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", id)
	do(to, "CLUSTER", "SETSLOT", slot, "NODE", id)
	do(from, "CLUSTER", "SETSLOT", slot, "NODE", id)
}

// sharded reports whether the server has sharded pub-sub, which came with Redis 7.
func sharded(t *testing.T, client redis.UniversalClient) bool {
	t.Helper()
	said, err := client.Do(t.Context(), "COMMAND", "INFO", "SSUBSCRIBE").Slice()
	if err != nil || len(said) != 1 {
		t.Fatalf("COMMAND INFO: got %v, %v", said, err)
	}
	return said[0] != nil
}

// A server without sharded pub-sub is known by its answer.
func TestAServerWithoutShardedMessagesIsNoticed(t *testing.T) {
	t.Parallel()
	var args []string
	if sharded(t, clientAt(t, "ASYNCLOCK_REDIS_URL")) { // one that hasn't does not start with these
		args = []string{"--rename-command", "SSUBSCRIBE", "", "--rename-command", "SPUBLISH", ""}
	}
	sv := redistest.Start(t, servers.Config{Args: args})
	client := redis.NewClient(&redis.Options{Addr: sv.Addr})
	defer client.Close()
	d := newDriverOf(t, client)
	ch := redisdriver.Channel{Name: "channel", Sharded: true}
	if err := d.Receive(t.Context(), ch, func() {}, func(string) {}); !errors.Is(err, redisdriver.ErrUnsharded) {
		t.Errorf("Receive: got %v, want ErrUnsharded", err)
	}
	if _, err := d.Publish(t.Context(), ch, "text"); !errors.Is(err, redisdriver.ErrUnsharded) {
		t.Errorf("Publish: got %v, want ErrUnsharded", err)
	}
}

// Receive tells what the server does, and the server forgets a subscription whose context has ended.
func TestASubscriptionEndsOnTheServer(t *testing.T) {
	t.Parallel()
	sv := redistest.Start(t, servers.Config{})
	client := redis.NewClient(&redis.Options{Addr: sv.Addr})
	defer client.Close()
	d := newDriverOf(t, client)
	kinds := []bool{false, true}
	if !sharded(t, client) {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		ch := redisdriver.Channel{Name: "channel", Sharded: kind}
		confirmed, delivered, ended := make(chan struct{}), make(chan string, 1), make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		go func() { // ends with ctx
			ended <- d.Receive(ctx, ch, func() { close(confirmed) }, func(text string) { delivered <- text })
		}()
		select {
		case <-confirmed:
		case err := <-ended:
			t.Fatalf("Receive: got %v, want it to go on", err)
		}
		if n, err := d.Publish(t.Context(), ch, "text"); n != 1 || err != nil {
			t.Errorf("Publish: got %d, %v, want 1", n, err)
		}
		select {
		case got := <-delivered:
			if got != "text" {
				t.Errorf("got %q, want the text", got)
			}
		case err := <-ended:
			t.Fatalf("Receive: got %v, want the text", err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Receive: got %v, want Canceled", err)
		}
		kit.Eventually(t, "nobody is subscribed", func() bool {
			n, err := d.Publish(t.Context(), ch, "text")
			return n == 0 && err == nil
		})
	}
}

// A subscription that a silent server does not confirm ends with its context, and leaves nothing.
func TestReceiveEndsWithItsContext(t *testing.T) {
	t.Parallel()
	sv, client := startWith(t, func(o *redis.Options) { o.ReadTimeout = time.Minute })
	if err := sv.Pause(); err != nil {
		t.Fatal(err)
	}
	defer sv.Resume() //nolint:errcheck // the server ends anyway
	d := newDriverOf(t, client)
	for _, sharded := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		ended := make(chan error, 1)
		go func() { // ends with ctx
			ended <- d.Receive(ctx, redisdriver.Channel{Name: "channel", Sharded: sharded}, func() {}, func(string) {})
		}()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("sharded %t: got %v, want Canceled", sharded, err)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("sharded %t: Receive goes on, want it to end with its context", sharded)
		}
	}
}
