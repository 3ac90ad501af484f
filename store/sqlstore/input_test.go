// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	d := Postgres(new(sql.DB))
	for name, o := range map[string]Option{
		"no option": nil, "no prefix": WithPrefix(""), "quotes": WithPrefix(`a"b`), "a space": WithPrefix("a b"), "two schemas": WithPrefix("a.b.c_"),
		"a long prefix": WithPrefix(strings.Repeat("a", 32)), "interval 0": WithPollInterval(0), "a long interval": WithPollInterval(time.Hour),
		"nil logger": WithLogger(nil),
	} {
		if _, err := New(t.Context(), d, o); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("New with %s: got %v, want ErrInvalidOption", name, err)
		}
		if err := Migrate(t.Context(), d, o); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("Migrate with %s: got %v, want ErrInvalidOption", name, err)
		}
	}
}

func TestBadRequestsLeaveTheirNeighboursAlone(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d)
		c := join(t, st)
		batch := []store.AcquireRequest{sqltest.Request("good0", "a")}
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
			q := sqltest.Request("key", "a")
			spoil(&q)
			batch = append(batch, q)
		}
		batch = append(batch, sqltest.Request("good1", "a"))
		for i, got := range c.Session.Acquire(t.Context(), batch) {
			if i == 0 || i == len(batch)-1 {
				if got.Status != store.Granted {
					t.Errorf("good request beside bad ones: got %+v, want Granted", got)
				}
			} else if !errors.Is(got.Err, store.ErrInvalidOption) && !errors.Is(got.Err, store.ErrInvalidKey) {
				t.Errorf("%+v: got %+v, want ErrInvalidOption or ErrInvalidKey", batch[i], got)
			}
		}
		for _, q := range []store.ReleaseRequest{
			{Key: "key", Owner: "a", Token: -1},
			{Key: "key", Owner: "a", HoldBack: -1},
			{Key: "key", Owner: "a", Requeue: &store.AcquireRequest{Key: "other", Owner: "b", TTL: sqltest.Long}},
			{Key: "key", Owner: "a", Requeue: &store.AcquireRequest{Key: "key", Owner: "", TTL: sqltest.Long}},
			{Key: "key", Owner: "a", Requeue: &store.AcquireRequest{Key: "key", Owner: "b", TTL: sqltest.Long, Wait: true}},
		} {
			if got := c.Session.Release(t.Context(), []store.ReleaseRequest{q})[0].Err; !errors.Is(got, store.ErrInvalidOption) {
				t.Errorf("Release of %+v: got %v, want ErrInvalidOption", q, got)
			}
		}
		if got := c.Session.Renew(t.Context(), []store.RenewRequest{{Key: "key", Owner: "a"}})[0].Err; !errors.Is(got, store.ErrInvalidOption) {
			t.Errorf("Renew without a TTL: got %v, want ErrInvalidOption", got)
		}
		bad := store.RenewRequest{Key: "key", Owner: "a", TTL: sqltest.Long, Share: store.Share{Mode: store.Permits, Weight: 2, Limit: 1}}
		if got := c.Session.Renew(t.Context(), []store.RenewRequest{bad})[0].Err; !errors.Is(got, store.ErrInvalidOption) {
			t.Errorf("Renew of more permits than there are: got %v, want ErrInvalidOption", got)
		}
		for _, id := range []string{"", "a b", "ä"} {
			if _, err := st.Open(id, func(store.Event) {}); !errors.Is(err, store.ErrInvalidOption) {
				t.Errorf("Open as %q: got %v, want ErrInvalidOption", id, err)
			}
		}
		if _, err := st.Open("id", nil); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("Open without events: got %v, want ErrInvalidOption", err)
		}
		st.Close()
		if _, err := st.Open("id", func(store.Event) {}); !errors.Is(err, store.ErrClosed) {
			t.Errorf("Open after Close: got %v, want ErrClosed", err)
		}
		if got := c.Session.Acquire(t.Context(), batch[:1])[0].Err; !errors.Is(got, store.ErrClosed) {
			t.Errorf("Acquire after Close: got %v, want ErrClosed", got)
		}
	})
}
