// SPDX-License-Identifier: Apache-2.0

package asynclockui_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclockui"
)

// TestEvents: the body of the page comes again when it has changed, and each stream ends after twenty seconds.
func TestEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, asynclockui.WithJobs("job"))
		begin := time.Now()
		go func() {
			time.Sleep(4500 * time.Millisecond)
			lease := w.lock(w.theirs, "<i>")
			time.Sleep(time.Second)
			_ = lease.Unlock(t.Context())
		}()
		stream := w.get(http.StatusOK, "events?page=key&key=%3Ci%3E")
		const same = "event: same\ndata:\n\n"
		if n := strings.Count(stream, same); n != 17 {
			t.Errorf("got %d times that nothing has changed, want it in each of the other seconds: 17", n)
		}
		events := strings.Split(strings.TrimSpace(strings.ReplaceAll(stream, same, "")), "\n\n")
		if took := time.Since(begin); took != 20*time.Second || events[len(events)-1] != "event: end\ndata: 0" {
			t.Errorf("got %q after %v, want an end after 20 s", events[len(events)-1], took)
		}
		if n := len(events); n != 4 || !strings.Contains(events[1], "theirs") {
			t.Errorf("got %d events, want that nobody has it, somebody, nobody, and the end:\n%s", n, stream)
		}
		for _, event := range events[:len(events)-1] {
			if !strings.HasPrefix(event, "event: body\ndata: <dl>") || strings.Contains(event, "<html") || strings.Contains(event, "<i>") {
				t.Errorf("got event %q, want the body of the page", event)
			}
		}
		for _, page := range []string{"key&key=k", "jobs", "stats"} {
			w.has(w.get(http.StatusOK, "events?page="+page), "event: body\ndata: <", "event: end")
		}
		for _, page := range []string{"", "checks", "key", "unlock&key=k"} {
			w.get(http.StatusNotFound, "events?page="+page)
		}
	})
}

// TestManyWatchOneKey: the store is asked once a second, however many do, and each stream begins with what is so by then.
func TestManyWatchOneKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, leave := context.WithCancel(t.Context())
		for range 9 {
			go w.answer(http.StatusOK, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events?page=key&key=k", nil))
			time.Sleep(time.Millisecond)
		}
		asked := w.store.inspects.Load()
		time.Sleep(9500 * time.Millisecond)
		if n := w.store.inspects.Load() - asked; n != 9 {
			t.Errorf("got %d requests in 9.5 s, want 9", n)
		}
		w.lock(w.theirs, "k")
		go func() {
			time.Sleep(1500 * time.Millisecond)
			leave()
		}()
		w.has(w.answer(http.StatusOK, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events?page=key&key=k", nil)), "theirs", "!nobody")
	})
}

// TestManyWatchASlowKey: those who wait for an answer share it, and no stream is longer than others.
func TestManyWatchASlowKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store.inspectTakes.Store(int64(2 * time.Second))
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				begin := time.Now()
				stream := w.get(http.StatusOK, "events?page=key&key=k")
				if n, took := strings.Count(stream, "event: "), time.Since(begin); n < 10 || took > 24*time.Second {
					t.Errorf("got %d events in %v, want 10 at least, in 20 s", n, took)
				}
			})
		}
		all.Wait()
		if n := w.store.inspects.Load(); n > 13 {
			t.Errorf("got %d requests, want one after the other", n)
		}
	})
}

// TestEventsOfASlowStore: a list that takes its time is shown each second.
func TestEventsOfASlowStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.store.beforeLists(func(context.Context) { time.Sleep(10 * time.Millisecond) })
		if w.get(http.StatusOK, "events?page=locks"); w.store.lists.Load() != 20 {
			t.Errorf("got %d lists in 20 s, want 20", w.store.lists.Load())
		}
	})
}

// TestEventsWithoutBody: who asks for the head alone has it at once.
func TestEventsWithoutBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, begin := newWorld(t), time.Now()
		w.answer(http.StatusOK, httptest.NewRequestWithContext(t.Context(), http.MethodHead, "/events?page=stats", nil))
		if took := time.Since(begin); took != 0 {
			t.Errorf("got it after %v, want it at once", took)
		}
	})
}

// TestEventsEndWithTheRequest: nothing goes on when the browser has left.
func TestEventsEndWithTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		begin := time.Now()
		w.answer(http.StatusOK, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events?page=stats", nil))
		if took := time.Since(begin); took != 1500*time.Millisecond {
			t.Errorf("got the end after %v, want it with the request", took)
		}
	})
}

// TestEventsOutlastTheServersLimit: a server that limits how long an answer may take sends events all the same.
func TestEventsOutlastTheServersLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := httptest.NewUnstartedServer(w.page)
	server.Config.WriteTimeout = 10 * time.Millisecond
	server.Start()
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/events?page=locks", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	w.lock(w.theirs, "k")
	for lines := bufio.NewScanner(got.Body); ; {
		if !lines.Scan() {
			t.Fatalf("the stream ended: %v", lines.Err())
		}
		if strings.Contains(lines.Text(), "1 held") {
			break
		}
	}
}

// A writer cannot send a part of an answer, as those of many wrappers.
type unflushable struct{ http.ResponseWriter }

// TestEventsWithoutStreams: where an answer is kept back until it is complete, it is complete at once.
func TestEventsWithoutStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		begin, page := time.Now(), w.page
		w.page = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { page.ServeHTTP(unflushable{w}, r) })
		w.has(w.get(http.StatusOK, "events?page=locks"), "event: body\ndata: <p>0 held", "event: end\ndata: 3000\n\n")
		if took := time.Since(begin); took != 0 {
			t.Errorf("got it after %v, want it at once", took)
		}
	})
}

// TestManyStreams: more than so many get none, and all others go on.
func TestManyStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 64 {
			go w.get(http.StatusOK, "events?page=stats")
		}
		synctest.Wait()
		w.has(w.get(http.StatusServiceUnavailable, "events?page=stats"), "Too many look")
		w.get(http.StatusOK, "stats")
		time.Sleep(21 * time.Second)
		w.get(http.StatusOK, "events?page=stats")
	})
}
