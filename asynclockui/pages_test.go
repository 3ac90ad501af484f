// SPDX-License-Identifier: Apache-2.0

package asynclockui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclockui"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/once"
)

func TestLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.has(w.get(http.StatusOK, ""), "0 held, 0 waiting", "No key is held")
		time.Sleep(time.Minute)
		w.lock(w.theirs, "b")
		w.lock(w.theirs, "a<b>")
		go func() { _, _ = w.ours.Lock(w.Context(), "b") }()
		time.Sleep(time.Second)
		page := w.get(http.StatusOK, "")
		w.has(page, "2 held, 1 waiting", "a&lt;b&gt;", `href="key?key=a%3Cb%3E"`, "theirs", "!a<b>", `aria-sort="ascending"><a id="by-key"`)
		inOrder(t, page, "a&lt;b", `key=b"`)
		inOrder(t, w.get(http.StatusOK, "?sort=waiting"), `key=b"`, "a&lt;b")
		inOrder(t, w.get(http.StatusOK, "?reverse=1"), `key=b"`, "a&lt;b")
		w.has(w.get(http.StatusOK, "?q=b%3E&sort=held&reverse=1"), "a&lt;b", `!key=b"`, "events?page=locks&amp;q=b%3E&amp;reverse=1&amp;sort=held", `value="b&gt;"`,
			`aria-sort="ascending"><a id="by-held" href="./?q=b%3E&amp;sort=held"`)
		w.has(w.get(http.StatusOK, "?q=nowhere&sort=nothing"), "No key with this text", "2 held")
	})
}

func inOrder(t *testing.T, page, first, second string) {
	t.Helper()
	if i, j := strings.Index(page, first), strings.Index(page, second); i < 0 || j < i {
		t.Errorf("got %q at %d and %q at %d, want this order", first, i, second, j)
	}
}

// TestManyLocks: a page has 500 rows at most, and says how many more there are.
func TestManyLocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 620 {
		w.lock(w.theirs, strconv.Itoa(1000+i))
	}
	page := w.get(http.StatusOK, "")
	w.has(page, "120 more keys are not shown", "1499", "!1500", "620 held")
	w.has(w.get(http.StatusOK, "?q=16"), "1619", "!more keys")
}

func TestKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, asynclockui.WithForceUnlock(), asynclockui.WithChecks(memory(t)))
		key := "a b/\x01<i>"
		address := "key=a+b%2F%01%3Ci%3E"
		shown := strings.ReplaceAll(address, "+", "&#43;")
		w.has(w.get(http.StatusOK, "key?"+address), "nobody", "!unlock", "checks?"+shown)
		lease := w.lock(w.theirs, key)
		go func() { _, _ = w.ours.Lock(w.Context(), key) }()
		time.Sleep(3 * time.Second)
		w.has(w.get(http.StatusOK, "key?"+address), `<dd>theirs</dd>`, `<dd>`+strconv.FormatInt(lease.Token(), 10)+`</dd>`, "ours, for 3.0s", "unlock?"+shown,
			`a b/\x01&lt;i&gt;`, "!<i>", "events?page=key&amp;"+shown)
		for _, c := range []*asynclock.Client{w.ours, w.theirs} {
			if _, err := c.RLock(w.Context(), "shared"); err != nil {
				t.Fatal(err)
			}
		}
		w.has(w.get(http.StatusOK, "key?key=shared"), "2 readers", "<li>ours, token ", "<li>theirs, token ", "shared</dd>")
		w.has(w.get(http.StatusBadRequest, "key"), "names no key")
	})
}

// TestNotes: the note of a job is its last run, and any other is a text.
func TestNotes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, asynclockui.WithJobs("job", "never"), asynclockui.WithElections("leader", "nobody's"))
		_, err := once.Do(t.Context(), w.theirs, "job", time.Hour, func(context.Context, once.Run) error { return errors.New("disk <full>") })
		if err == nil {
			t.Fatal("got no error of the job")
		}
		lead, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- elect.Run(lead, w.theirs, "leader", func(ctx context.Context, _ *elect.Term) error { <-ctx.Done(); return nil }, elect.WithValue([]byte("10.0.0.7\x02")))
		}()
		synctest.Wait()
		w.has(w.get(http.StatusOK, "key?key=job"), "disk &lt;full&gt;", "Run ended", "<dd>theirs</dd>")
		w.has(w.get(http.StatusOK, "key?key=leader"), `10.0.0.7\x02`, "Note by token")
		page := w.get(http.StatusOK, "jobs")
		w.has(page, "disk &lt;full&gt;", "none is known", "<dd>theirs</dd>", `10.0.0.7\x02`, "<dt>Leader</dt> <dd>nobody</dd>", `href="key?key=nobody%27s"`)
		w.has(page, `!class="fail"`)
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
		w.has(w.get(http.StatusOK, "jobs"), "!10.0.0.7")
	})
}

// TestPrefix: keys with other names are not shown in any way.
func TestPrefix(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.page = w.handler(asynclockui.WithPrefix("our/"), asynclockui.WithForceUnlock(), asynclockui.WithChecks(w.store))
	lease := w.lock(w.theirs, "other/k")
	w.lock(w.theirs, "our/k")
	w.has(w.get(http.StatusOK, ""), "our/k", "!other/k", "1 held")
	for _, address := range []string{"key?key=other/k", "unlock?key=other/k", "checks?key=other/k"} {
		w.has(w.get(http.StatusForbidden, address), "!theirs")
	}
	w.get(http.StatusNotFound, "events?page=key&key=other/k")
	w.post(http.StatusForbidden, "checks", url.Values{"key": {"other/k"}})
	w.post(http.StatusForbidden, "unlock", typed(lease, "other/k"))
	w.has(w.post(http.StatusOK, "checks", nil), "1 key is held", "!other")
	if !lease.Valid(0) {
		t.Error("the lease was lost")
	}
}

// TestStats: each count is on the page, and one that comes later will be.
func TestStats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lock(w.ours, "k")
	page := w.get(http.StatusOK, "stats")
	w.has(page, "<dt>requested</dt> <dd>1</dd>", "<dt>acquired: at once</dt> <dd>1</dd>", "<dt>store</dt> <dd>memory</dd>", "<h2>exclusive</h2>", "<dt>failing</dt> <dd>false</dd>")
	text, err := json.Marshal(w.ours.Stats())
	var fields map[string]any
	if err = errors.Join(err, json.Unmarshal(text, &fields)); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(page, "<dt>"), leaves(fields); got != want {
		t.Errorf("got %d counts, want %d", got, want)
	}
}

func leaves(v any) (n int) {
	fields, ok := v.(map[string]any)
	if !ok {
		return 1
	}
	for _, field := range fields {
		n += leaves(field)
	}
	return n
}

// TestChecks: a look starts none, and one at a time is enough.
func TestChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.page = w.handler(asynclockui.WithChecks(w.store))
		w.lock(w.theirs, "k")
		w.has(w.get(http.StatusOK, "checks"), "takes keys with random names", "!findings")
		w.has(w.get(http.StatusOK, "checks?key=k"), "Why wait for k?", `action="checks?key=k"`, "!findings")
		second := make(chan string)
		go func() {
			time.Sleep(time.Second)
			second <- w.post(http.StatusTooManyRequests, "checks", nil)
		}()
		page := w.post(http.StatusOK, "checks", url.Values{"key": {"k"}}) // which takes two seconds
		w.has(page, "findings", "holder", "theirs", `href="key?key=k"`)
		w.has(<-second, "Somebody checks already")
		w.has(w.post(http.StatusOK, "checks", nil), "answers", "messages", `class="ok"`, "!not all was checked")
	})
}

// TestStoreThatFails: what is known is shown, with what is wrong.
func TestStoreThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, asynclockui.WithForceUnlock())
		w.lock(w.theirs, "k")
		w.get(http.StatusOK, "")
		time.Sleep(time.Second)
		if err := w.ours.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.has(w.get(http.StatusOK, ""), "may be old or incomplete", "closed", "theirs", "1 held")
		w.has(w.get(http.StatusOK, "key?key=k"), "may be old or incomplete", "closed")
		w.has(w.get(http.StatusOK, "unlock?key=k"), "can&#39;t be seen", "!<form")
		w.has(w.get(http.StatusOK, "stats"), "requested")
	})
}

// TestSilentStore: one who looks waits for it, and all others see at once what was so before.
func TestSilentStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lock(w.theirs, "k")
		w.has(w.get(http.StatusOK, ""), "1 held", "!ago")
		time.Sleep(4 * time.Second)
		w.store.beforeLists(hang)
		begin, waits := time.Now(), make(chan string)
		go func() { waits <- w.get(http.StatusOK, "") }()
		synctest.Wait()
		w.has(w.get(http.StatusOK, ""), "theirs", "(4s ago)", "!may be old")
		if took := time.Since(begin); took != 0 {
			t.Errorf("got the page after %v, want it at once", took)
		}
		w.has(<-waits, "theirs", "may be old or incomplete")
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("got the page after %v, want 10 s at most", took)
		}
		w.store.before.Store(nil)
		time.Sleep(20 * time.Second)
		w.has(w.get(http.StatusOK, ""), "theirs", "!ago", "!may be old")
	})
}

// TestStoreThatPanics: whoever looks then is told so by the server, and all others see the locks.
func TestStoreThatPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lock(w.theirs, "k")
	w.store.beforeLists(func(context.Context) { panic("no list") })
	for range 2 {
		func() {
			defer func() {
				if got := recover(); got != "no list" {
					t.Errorf("got panic %v, want that of the store", got)
				}
			}()
			w.get(http.StatusOK, "")
		}()
	}
	w.store.before.Store(nil)
	w.has(w.get(http.StatusOK, ""), "1 held")
}

// TestNobodyLooks: however many look, there is a list in a second at most. Without anybody there is none.
func TestNobodyLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.lock(w.theirs, "k")
		for range 100 {
			go w.get(http.StatusOK, fmt.Sprintf("?q=%d", 1))
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.store.lists.Load(); n != 10 {
			t.Errorf("got %d lists in 10 s, want 10", n)
		}
		time.Sleep(time.Hour)
		if n := w.store.lists.Load(); n != 10 {
			t.Errorf("got %d lists in the hour after, want none", n-10)
		}
	})
}
