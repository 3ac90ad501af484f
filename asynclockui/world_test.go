// SPDX-License-Identifier: Apache-2.0

package asynclockui_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclockui"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is a store with two clients, and a page of the first one.
type world struct {
	*testing.T

	store        *counted
	ours, theirs *asynclock.Client
	page         http.Handler
	log          bytes.Buffer
}

func newWorld(t *testing.T, options ...asynclockui.Option) *world {
	t.Helper()
	w := &world{T: t, store: &counted{Store: memstore.New()}}
	w.ours, w.theirs = w.client("ours"), w.client("theirs")
	options = append([]asynclockui.Option{asynclockui.WithLogger(slog.New(slog.NewTextHandler(&w.log, nil)))}, options...)
	w.page = w.handler(options...)
	return w
}

func (w *world) client(description string) *asynclock.Client {
	w.Helper()
	c, err := asynclock.New(w.store, asynclock.WithoutLogger(), asynclock.WithDescription(description))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.Close(ended) // some leave leases
	})
	return c
}

func (w *world) handler(options ...asynclockui.Option) http.Handler {
	w.Helper()
	h, err := asynclockui.Handler(w.ours, asynclockui.Everybody, options...)
	if err != nil {
		w.Fatal(err)
	}
	return h
}

// lock takes a key.
func (w *world) lock(c *asynclock.Client, key string) *asynclock.Lease {
	w.Helper()
	lease, err := c.Lock(w.Context(), key)
	if err != nil {
		w.Fatal(err)
	}
	return lease
}

// get returns a page, which has to have the status.
func (w *world) get(status int, address string) string {
	w.Helper()
	return w.answer(status, httptest.NewRequestWithContext(w.Context(), http.MethodGet, "/"+address, nil))
}

// post sends a form.
func (w *world) post(status int, address string, form url.Values) string {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), http.MethodPost, "/"+address, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return w.answer(status, r)
}

func (w *world) answer(status int, r *http.Request) string {
	w.Helper()
	got := httptest.NewRecorder()
	w.page.ServeHTTP(got, r)
	if got.Code != status {
		w.Errorf("%s %s: got status %d, want %d", r.Method, r.URL, got.Code, status)
	}
	if csp := got.Header().Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none';") {
		w.Errorf("%s %s: got policy %q", r.Method, r.URL, csp)
	}
	return got.Body.String()
}

// has checks that a page has texts, and has not those that begin with an exclamation mark.
func (w *world) has(page string, texts ...string) {
	w.Helper()
	for _, text := range texts {
		wanted, not := strings.CutPrefix(text, "!")
		if has := strings.Contains(page, wanted); has == not {
			w.Errorf("has %q: got %v, want %v, in\n%s", wanted, has, !not, page)
		}
	}
}

// A counted store counts requests, and may do something before it answers to those for a list.
type counted struct {
	store.Store

	lists, inspects atomic.Int32
	inspectTakes    atomic.Int64                          // a duration
	before          atomic.Pointer[func(context.Context)] // a list; nil: nothing
}

func (c *counted) beforeLists(do func(context.Context)) { c.before.Store(&do) }

func hang(ctx context.Context) { <-ctx.Done() }

// A memorySession is what sessions of memstore can do.
type memorySession interface {
	store.LimitSession
	store.NoteSession
}

type countedSession struct {
	memorySession

	of *counted
}

func (c *counted) Open(id string, notify func(store.Event)) (store.Session, error) {
	s, err := c.Store.Open(id, notify)
	if err != nil {
		return nil, err
	}
	return countedSession{s.(memorySession), c}, nil
}

func (s countedSession) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	s.of.lists.Add(1)
	if do := s.of.before.Load(); do != nil {
		(*do)(ctx)
	}
	return s.memorySession.List(ctx, prefix)
}

func (s countedSession) Inspect(ctx context.Context, key string) (store.Info, error) {
	s.of.inspects.Add(1)
	time.Sleep(time.Duration(s.of.inspectTakes.Load()))
	return s.memorySession.Inspect(ctx, key)
}
