// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/storetest"
)

func TestBadOptions(t *testing.T) {
	t.Parallel()
	sv := onMiniredis(t)
	for name, option := range map[string]Option{
		"nil option": nil, "nil logger": WithLogger(nil), "no prefix": WithPrefix(""), "braces": WithPrefix("a{b}"),
		"colon": WithPrefix("a:b"), "star": WithPrefix("*"), "space": WithPrefix("a b"), "umlaut": WithPrefix("ä"),
		"long prefix":    WithPrefix(strings.Repeat("x", 65)),
		"no counter TTL": WithCounterTTL(0), "negative counter TTL": WithCounterTTL(-1),
		"short counter TTL": WithCounterTTL(time.Minute - 1), "long counter TTL": WithCounterTTL(30*24*time.Hour + 1),
		"no grace": WithFailoverGrace(0), "negative grace": WithFailoverGrace(-1),
		"short grace": WithFailoverGrace(time.Millisecond), "long grace": WithFailoverGrace(25 * time.Hour),
	} {
		if st, err := Open(sv.Option, option); !errors.Is(err, store.ErrInvalidOption) || st != nil {
			t.Errorf("Open with %s: got %v, %v; want ErrInvalidOption", name, st, err)
		}
		if st, err := New(sv.Raw, option); !errors.Is(err, store.ErrInvalidOption) || st != nil {
			t.Errorf("New with %s: got %v, %v; want ErrInvalidOption", name, st, err)
		}
	}
	if _, err := New(nil); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("New without a client: got %v, want ErrInvalidOption", err)
	}
	st, err := New(sv.Raw, WithPrefix(strings.Repeat("x", 64)), WithPrefix("A-z_0.9"), WithLogger(slog.Default()))
	if err != nil {
		t.Fatalf("good options: got %v", err)
	}
	for _, id := range []string{"", "-", "two words", "line\n", "ü", strings.Repeat("x", 129)} {
		if _, err := st.Open(id, func(store.Event) {}); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("Open as %q: got %v, want ErrInvalidOption", id, err)
		}
	}
	if _, err := st.Open("id", nil); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("Open without events: got %v, want ErrInvalidOption", err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	nobody := rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}} // a port that the system gives to no test's server
	if _, err := Open(nobody); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("nobody listens: got %v, want ErrUnreachable", err)
	}
	if _, err := Open(rueidis.ClientOption{}); err == nil {
		t.Error("no address: got no error, want one")
	}
	sv := ownServer(t)
	addr := sv.own.Addr
	if _, err := OpenURL("redis://" + addr + "/99"); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("a database that is not there: got %v, want ErrInvalidOption", err)
	}
	sv.Do(t, "CONFIG", "SET", "requirepass", "secret-7")
	for name, option := range map[string]rueidis.ClientOption{
		"no password": {InitAddress: []string{addr}}, "wrong password": {InitAddress: []string{addr}, Password: "guess-9"},
	} {
		_, err := Open(option)
		if !errors.Is(err, store.ErrDenied) {
			t.Errorf("%s: got %v, want ErrDenied", name, err)
		} else if strings.Contains(err.Error(), "guess-9") {
			t.Errorf("%s: got %q, want no password in it", name, err)
		}
	}
}

func TestAfterCloseEverythingIsRefused(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		c, left := join(t, st), join(t, st)
		c.Hold("key", "a")
		if err := left.session.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantClosed(t, "left", left)
		st.Close()
		st.Close()
		wantClosed(t, "closed", c)
		if _, err := st.Open("id", func(store.Event) {}); !errors.Is(err, store.ErrClosed) {
			t.Errorf("Open: got %v, want ErrClosed", err)
		}
	})
}

// Not on miniredis, which allows no commands beside a subscription.
func TestTheApplicationsClientIsSharedAndLeftOpen(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL"))
	own, err := rueidis.NewClient(sv.Option) // as rueidis sets it up
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	sv.acquaint(t, long)
	st, err := New(own, WithPrefix(sv.prefix))
	if err != nil {
		t.Fatal(err)
	}
	a, b := join(t, st), join(t, st)
	a.Hold("key", "a")
	b.Wait("key", "b")
	a.release(store.ReleaseRequest{Key: "key", Owner: "a"})
	b.Heard(store.EventGrant, "b")
	st.Close()
	wantClosed(t, "closed", a)
	if err := own.Do(t.Context(), own.B().Ping().Build()).Error(); err != nil {
		t.Errorf("the application's client after Close: got %v, want it open", err)
	}
}

func wantClosed(t *testing.T, when string, c *client) {
	t.Helper()
	ctx := context.Background()
	errs := map[string]error{
		"Acquire": c.Acquire(redistest.Request("key", "x")).Err,
		"Renew":   c.renew(store.RenewRequest{Key: "key", Owner: "x", TTL: long}).Err,
		"Release": c.session.Release(ctx, []store.ReleaseRequest{{Key: "key", Owner: "x"}})[0].Err,
	}
	_, errs["Inspect"] = c.session.Inspect(ctx, "key")
	_, errs["Force"] = c.session.Force(ctx, "key", 0)
	for _, err := range c.session.List(ctx, "") {
		errs["List"] = err
	}
	for verb, err := range errs {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: %s: got %v, want ErrClosed", when, verb, err)
		}
	}
	if len(errs) != 6 {
		t.Errorf("%s: List: got no error, want ErrClosed", when)
	}
}

func TestBadRequests(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		acquires := map[string]func(*store.AcquireRequest){
			"owner with a space": func(q *store.AcquireRequest) { q.Owner = "a b" },
			"nobody":             func(q *store.AcquireRequest) { q.Owner = "-" },
			"no owner":           func(q *store.AcquireRequest) { q.Owner = "" },
			"no TTL":             func(q *store.AcquireRequest) { q.TTL = 0 },
			"no grant TTL":       func(q *store.AcquireRequest) { q.GrantTTL = 0 },
			"no liveness":        func(q *store.AcquireRequest) { q.WaiterTTL = -1 },
			"negative ticket":    func(q *store.AcquireRequest) { q.Ticket = -1 },
			"huge ticket":        func(q *store.AcquireRequest) { q.Ticket = 1<<53 - 1 },
		}
		// The store learns that miniredis hides its history. Otherwise it would ask again, without the bad requests.
		c.Hold("another key", "a")
		batch := []store.AcquireRequest{redistest.Request("good0", "a")}
		for _, spoil := range acquires {
			q := redistest.Request("key", "a")
			spoil(&q)
			batch = append(batch, q)
		}
		batch = append(batch, redistest.Request("good1", "a"))
		for i, got := range c.session.Acquire(t.Context(), batch) {
			if i == 0 || i == len(batch)-1 {
				if got.Status != store.Granted || !c.Inspect(batch[i].Key).Held {
					t.Errorf("%s beside bad requests: got %+v, want it granted and held", batch[i].Key, got)
				}
			} else if !errors.Is(got.Err, store.ErrInvalidOption) {
				t.Errorf("%+v: got %+v, want ErrInvalidOption", batch[i], got)
			}
		}
		for name, q := range map[string]store.ReleaseRequest{
			"negative token": {Key: "key", Owner: "a", Token: -1}, "huge token": {Key: "key", Owner: "a", Token: 1<<53 - 1},
			"negative keep": {Key: "key", Owner: "a", HoldBack: -1}, "requeue elsewhere": {Key: "key", Owner: "a", Requeue: &batch[0]},
		} {
			if got := c.session.Release(t.Context(), []store.ReleaseRequest{q})[0]; !errors.Is(got.Err, store.ErrInvalidOption) {
				t.Errorf("Release with %s: got %+v, want ErrInvalidOption", name, got)
			}
		}
		if got := c.session.Acquire(t.Context(), nil); got != nil {
			t.Errorf("Acquire of nothing: got %+v, want nothing", got)
		}
		if info := c.Inspect("key"); info.Held || info.Waiters != 0 {
			t.Errorf("key after bad requests: got %+v, want it free", info)
		}
	})
}

func TestTTLsAreRoundedUp(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second - 1: 1000} {
		if got := millis(d); got != want {
			t.Errorf("%v: got %d ms, want %d", d, got, want)
		}
	}
}

// Servers and proxies that know RESP2 only get a connection for messages.
func TestOverRESP2(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		sv.Option.AlwaysRESP2 = true
		st := sv.store(t)
		a, b := join(t, st), join(t, st)
		a.Hold("key", "a")
		if got := b.Wait("key", "b"); got.Recheck != 0 {
			t.Errorf("Recheck: got %v, want messages", got.Recheck)
		}
		a.release(store.ReleaseRequest{Key: "key", Owner: "a"})
		b.Heard(store.EventGrant, "b")
		if info := b.Inspect("key"); info.Holder != "b at home" {
			t.Errorf("Inspect: got %+v, want b", info)
		}
		if got := len(list(t, b, "")); got != 1 {
			t.Errorf("List: got %d keys, want 1", got)
		}
		for _, c := range []*client{a, b} {
			if err := c.session.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if got := join(t, st).Wait("key", "c"); got.Recheck != 0 {
			t.Errorf("Recheck of who comes after all have left: got %v, want messages", got.Recheck)
		}
	})
}

func TestAStoreThatIsOnlyDeclaredIsRefused(t *testing.T) {
	t.Parallel()
	storetest.Zero(t, new(Store))
}

func TestAStoreWithoutADriverIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := NewWith(nil); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("got %v, want ErrInvalidOption", err)
	}
}
