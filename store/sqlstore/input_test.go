// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	d := Postgres(new(sql.DB))
	for name, o := range map[string]SpringOption{
		"no option": nil, "no prefix": WithPrefix(""), "quotes": WithPrefix(`a"b`), "a space": WithPrefix("a b"), "two schemas": WithPrefix("a.b.c_"),
		"a long prefix": WithPrefix(strings.Repeat("a", 32)), "idle 0": WithIdle(0), "a long idle": WithIdle(time.Hour), "nil logger": WithLogger(nil),
		"no region": WithRegion(""), "a long region": WithRegion(strings.Repeat("x", 101)), "region of no UTF-8": WithRegion("\xff"),
		"blank region": WithRegion(" "), "region with NUL": WithRegion("a\x00"),
		"no generation": WithGeneration(0), "a short TTL": WithRepositoryTTL(time.Millisecond), "negative skew": WithSkewWarning(-1),
	} {
		if _, err := NewSpring(t.Context(), d, o); !errors.Is(err, store.ErrBadOption) {
			t.Errorf("NewSpring with %s: got %v, want ErrBadOption", name, err)
		}
		if err := MigrateSpring(t.Context(), d, o); !errors.Is(err, store.ErrBadOption) {
			t.Errorf("MigrateSpring with %s: got %v, want ErrBadOption", name, err)
		}
		both, ok := o.(Option)
		if !ok {
			continue
		}
		if _, err := New(t.Context(), d, both); !errors.Is(err, store.ErrBadOption) {
			t.Errorf("New with %s: got %v, want ErrBadOption", name, err)
		}
		if err := Migrate(t.Context(), d, both); !errors.Is(err, store.ErrBadOption) {
			t.Errorf("Migrate with %s: got %v, want ErrBadOption", name, err)
		}
	}
	for _, d := range []Database{{}, Postgres(nil), PostgresPool(nil), MySQL(nil)} {
		if _, err := New(t.Context(), d); !errors.Is(err, store.ErrBadOption) {
			t.Errorf("New without a database: got %v, want ErrBadOption", err)
		}
	}
	if got := Generation(9).String(); got != "Generation(9)" {
		t.Errorf("String of no generation: got %q", got)
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	for _, d := range []Database{
		Postgres(openDB(t, "pgx", "postgres://me@127.0.0.1:1/none")), MySQL(openDB(t, "mysql", "me@tcp(127.0.0.1:1)/none")),
	} {
		if _, err := New(t.Context(), d); !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("New on %s where nobody listens: got %v, want ErrUnreachable", d.name, err)
		}
		if _, err := NewSpring(t.Context(), d); !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("NewSpring on %s where nobody listens: got %v, want ErrUnreachable", d.name, err)
		}
	}
}

func TestBadRequestsLeaveTheirNeighboursAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		st := newTables(t, d)
		c := join(t, st)
		batch := []store.AcquireRequest{request("good0", "a")}
		for _, spoil := range []func(*store.AcquireRequest){
			func(q *store.AcquireRequest) { q.Key = "" },
			func(q *store.AcquireRequest) { q.Key = "\xff" },
			func(q *store.AcquireRequest) { q.Owner = "a b" },
			func(q *store.AcquireRequest) { q.Owner = "" },
			func(q *store.AcquireRequest) { q.TTL = 0 },
			func(q *store.AcquireRequest) { q.WaiterTTL = -1 },
			func(q *store.AcquireRequest) { q.WaiterTTL = 0 },
			func(q *store.AcquireRequest) { q.GrantTTL = 0 },
		} {
			q := request("key", "a")
			spoil(&q)
			batch = append(batch, q)
		}
		batch = append(batch, request("good1", "a"))
		for i, got := range c.session.Acquire(t.Context(), batch) {
			if i == 0 || i == len(batch)-1 {
				if got.Status != store.Granted {
					t.Errorf("good request beside bad ones: got %+v, want Granted", got)
				}
			} else if !errors.Is(got.Err, store.ErrBadOption) && !errors.Is(got.Err, store.ErrBadKey) {
				t.Errorf("%+v: got %+v, want ErrBadOption or ErrBadKey", batch[i], got)
			}
		}
		for _, q := range []store.ReleaseRequest{
			{Key: "key", Owner: "a", Token: -1},
			{Key: "key", Owner: "a", HoldBack: -1},
			{Key: "key", Owner: "a", Requeue: &store.AcquireRequest{Key: "other", Owner: "b", TTL: long}},
			{Key: "key", Owner: "a", Requeue: &store.AcquireRequest{Key: "key", Owner: "", TTL: long}},
			{Key: "key", Owner: "a", Requeue: &store.AcquireRequest{Key: "key", Owner: "b", TTL: long, Wait: true}},
		} {
			if got := c.session.Release(t.Context(), []store.ReleaseRequest{q})[0].Err; !errors.Is(got, store.ErrBadOption) {
				t.Errorf("Release of %+v: got %v, want ErrBadOption", q, got)
			}
		}
		if got := c.session.Renew(t.Context(), []store.RenewRequest{{Key: "key", Owner: "a"}})[0].Err; !errors.Is(got, store.ErrBadOption) {
			t.Errorf("Renew without a TTL: got %v, want ErrBadOption", got)
		}
		for _, id := range []string{"", "a b", "ä"} {
			if _, err := st.Open(id, func(store.Event) {}); !errors.Is(err, store.ErrBadOption) {
				t.Errorf("Open as %q: got %v, want ErrBadOption", id, err)
			}
		}
		if _, err := st.Open("id", nil); !errors.Is(err, store.ErrBadOption) {
			t.Errorf("Open without events: got %v, want ErrBadOption", err)
		}
		st.Close()
		if _, err := st.Open("id", func(store.Event) {}); !errors.Is(err, store.ErrClosed) {
			t.Errorf("Open after Close: got %v, want ErrClosed", err)
		}
		if got := c.session.Acquire(t.Context(), batch[:1])[0].Err; !errors.Is(got, store.ErrClosed) {
			t.Errorf("Acquire after Close: got %v, want ErrClosed", got)
		}
	})
}

// TestSkewIsSaid: by how much clocks differ at least, whenever the server looked at its
// own, once until they have agreed again.
func TestSkewIsSaid(t *testing.T) {
	t.Parallel()
	w := skewWatch{bound: time.Second}
	sent := time.Now()
	received := sent.Add(5 * time.Second) // slow, which is no skew
	for _, step := range []struct {
		server time.Time
		says   bool
	}{
		{sent.Add(-time.Second), false},
		{received.Add(time.Second), false},
		{sent.Add(-1100 * time.Millisecond), true},
		{sent.Add(-3 * time.Second), false},
		{sent, false},
		{received.Add(1100 * time.Millisecond), true},
	} {
		var log kit.Journal
		w.log = asynclog.New(log.Logger(slog.LevelInfo))
		w.observe(step.server, sent, received)
		w.log.Close()
		if got := strings.Contains(log.String(), "clock"); got != step.says {
			t.Errorf("server's clock %v after the request: got warning %v, want %v", step.server.Sub(sent), got, step.says)
		}
	}
}

// TestStoreWatchesTheSkew: with a bound that any two clocks differ by.
func TestStoreWatchesTheSkew(t *testing.T) {
	t.Parallel()
	var log kit.Journal
	st := newSpringTables(t, onPostgres(t), WithSkewWarning(time.Minute), WithLogger(log.Logger(slog.LevelInfo)))
	if st.skew.far.Load() {
		t.Error("a store whose clock is the server's: got that they differ")
	}
	if _, err := st.read(`{"clock": 1, "items": []}`, time.Now()); err != nil {
		t.Fatal(err)
	}
	st.log.Close()
	if got := strings.Count(log.String(), "clock"); got != 1 {
		t.Errorf("log of a store whose server's clock is of 1970 now: got %q, want one warning", log.String())
	}
}
