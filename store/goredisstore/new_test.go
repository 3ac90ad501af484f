// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// A client whose options make a promise untrue is refused, and the error says what to set.
func TestAClientThatBreaksAPromiseIsRefused(t *testing.T) {
	t.Parallel()
	good := redis.Options{ContextTimeoutEnabled: true, MaxRetries: -1}
	for _, c := range []struct {
		field  string
		change func(*redis.Options)
	}{
		{"ContextTimeoutEnabled", func(o *redis.Options) { o.ContextTimeoutEnabled = false }},
		{"MaxRetries", func(o *redis.Options) { o.MaxRetries = 0 }},
		{"MaxRetries", func(o *redis.Options) { o.MaxRetries = 1 }},
		{"MaxRetries", func(o *redis.Options) { o.MaxRetries = -2 }}, // go-redis sends nothing then
		{"ReadTimeout", func(o *redis.Options) { o.ReadTimeout = -1 }},
		{"ReadTimeout", func(o *redis.Options) { o.ReadTimeout = -2 }},
		{"WriteTimeout", func(o *redis.Options) { o.WriteTimeout = -1 }},
		{"Limiter", func(o *redis.Options) { o.Limiter = struct{ redis.Limiter }{} }},
	} {
		o := good
		c.change(&o)
		wantClientRefused(t, redis.NewClient(&o), "redis.Options", c.field)
	}
	for field, o := range map[string]*redis.ClusterOptions{
		"ContextTimeoutEnabled": {},
		"MaxRetries":            {ContextTimeoutEnabled: true, MaxRetries: 1},
		"ReadTimeout":           {ContextTimeoutEnabled: true, ReadTimeout: -1},
		"WriteTimeout":          {ContextTimeoutEnabled: true, WriteTimeout: -1},
		"NewClient":             {ContextTimeoutEnabled: true, NewClient: otherClient},
		"ReadOnly":              {ContextTimeoutEnabled: true, RouteRandomly: true},
		"ClusterSlots":          {ContextTimeoutEnabled: true, ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return nil, nil }},
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
	usual := redis.NewClient(&redis.Options{})
	defer usual.Close()
	if _, err := New(usual); err == nil || !strings.Contains(err.Error(), "ContextTimeoutEnabled") || !strings.Contains(err.Error(), "MaxRetries") {
		t.Errorf("a client of the usual kind: got %v, want all fields that are refused", err)
	}
	client := redis.NewClient(&good)
	defer client.Close()
	st, err := New(client)
	if err != nil {
		t.Fatalf("a client as it has to be: got %v, want no error", err)
	}
	st.Close()
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
	dial := &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
	if got := d.Failure(ended(t.Context(), dial)); !errors.Is(got, store.ErrUnreachable) {
		t.Errorf("a dial: got %v, want ErrUnreachable", got)
	}
}

// The application may close its client first. Nothing hangs then, and nothing is said to have been held.
func TestTheApplicationMayCloseItsClientFirst(t *testing.T) {
	t.Parallel()
	_, client := startWith(t, func(*redis.Options) {})
	st := newStore(t, client)
	locks, err := asynclock.New(st, asynclock.WithOwnedStore(), asynclock.WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	lease, err := locks.Lock(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := locks.TryLock(t.Context(), "another"); !errors.Is(err, asynclock.ErrUnreachable) {
		t.Errorf("TryLock: got %v, want ErrUnreachable", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := lease.Unlock(ended); err == nil {
		t.Error("Unlock: got no error, want one: the key is still held in the store")
	}
	closed := make(chan struct{})
	go func() { // ends soon, or the test fails
		defer close(closed)
		_ = locks.Close(ended) // says that a key could not be given back
	}()
	select {
	case <-closed:
	case <-time.After(20 * time.Second):
		t.Error("Close hangs")
	}
}

// A server that forgot the scripts receives them whole, one by one and in batches.
func TestScriptsAreSentWholeToAServerThatForgotThem(t *testing.T) {
	t.Parallel()
	sv := redistest.Start(t, servers.Config{})
	client := redis.NewClient(&redis.Options{Addr: sv.Addr, ContextTimeoutEnabled: true, MaxRetries: -1})
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
	client := redis.NewClient(&redis.Options{Addr: sv.Addr, ContextTimeoutEnabled: true, MaxRetries: -1, ReadTimeout: time.Second})
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
	dial := &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
	for _, c := range []struct{ err, want error }{
		{dial, store.ErrUnreachable},
		{&tls.CertificateVerificationError{Err: errors.New("of another authority")}, store.ErrUnreachable},
		{tls.RecordHeaderError{Conn: new(net.TCPConn)}, store.ErrUnreachable},
		{tls.RecordHeaderError{}, store.ErrOutcomeUnknown},
		{redis.ErrPoolTimeout, store.ErrUnreachable},
		{redis.ErrPoolExhausted, store.ErrUnreachable},
		{redis.ErrClosed, store.ErrUnreachable},
		{errNoNode, store.ErrUnreachable},
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
	d.Close()
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
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{d.Nodes[0].Addr}, ContextTimeoutEnabled: true})
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
	client := redis.NewClient(&redis.Options{Addr: d.Nodes[0].Addr, ContextTimeoutEnabled: true, MaxRetries: -1})
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
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true})
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

// A server without sharded pub-sub is known by its answer.
func TestAServerWithoutShardedMessagesIsNoticed(t *testing.T) {
	t.Parallel()
	sv := redistest.Start(t, servers.Config{Args: []string{"--rename-command", "SSUBSCRIBE", "", "--rename-command", "SPUBLISH", ""}})
	client := redis.NewClient(&redis.Options{Addr: sv.Addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	defer client.Close()
	d, err := newDriver(client)
	if err != nil {
		t.Fatal(err)
	}
	ch := redisstore.Channel{Name: "channel", Sharded: true}
	if err := d.Receive(t.Context(), ch, func() {}, func(string) {}); !errors.Is(err, redisstore.ErrUnsharded) {
		t.Errorf("Receive: got %v, want ErrUnsharded", err)
	}
	if _, err := d.Publish(t.Context(), ch, "text"); !errors.Is(err, redisstore.ErrUnsharded) {
		t.Errorf("Publish: got %v, want ErrUnsharded", err)
	}
}

// Receive tells what the server does, and the server forgets a subscription whose context has ended.
func TestASubscriptionEndsOnTheServer(t *testing.T) {
	t.Parallel()
	sv := redistest.Start(t, servers.Config{})
	client := redis.NewClient(&redis.Options{Addr: sv.Addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	defer client.Close()
	d, err := newDriver(client)
	if err != nil {
		t.Fatal(err)
	}
	for _, sharded := range []bool{false, true} {
		ch := redisstore.Channel{Name: "channel", Sharded: sharded}
		confirmed, delivered, ended := make(chan struct{}), make(chan string, 1), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // ends with ctx
			ended <- d.Receive(ctx, ch, func() { close(confirmed) }, func(text string) { delivered <- text })
		}()
		<-confirmed
		if n, err := d.Publish(t.Context(), ch, "text"); n != 1 || err != nil {
			t.Errorf("Publish: got %d, %v, want 1", n, err)
		}
		if got := <-delivered; got != "text" {
			t.Errorf("got %q, want the text", got)
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
	d, err := newDriver(client)
	if err != nil {
		t.Fatal(err)
	}
	for _, sharded := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		ended := make(chan error, 1)
		go func() { // ends with ctx
			ended <- d.Receive(ctx, redisstore.Channel{Name: "channel", Sharded: sharded}, func() {}, func(string) {})
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
