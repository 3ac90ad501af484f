// SPDX-License-Identifier: Apache-2.0

package asynclockui_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclockui"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestBadArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	handler := func(options ...asynclockui.Option) func() (http.Handler, error) {
		return func() (http.Handler, error) { return asynclockui.Handler(w.ours, asynclockui.Everybody, options...) }
	}
	for name, make := range map[string]func() (http.Handler, error){
		"no client":    func() (http.Handler, error) { return asynclockui.Handler(nil, asynclockui.Everybody) },
		"nobody may":   func() (http.Handler, error) { return asynclockui.Handler(w.ours, nil) },
		"nil option":   handler(nil),
		"nil store":    handler(asynclockui.WithChecks(nil)),
		"no store":     handler(asynclockui.WithChecks((*counted)(nil))),
		"nil logger":   handler(asynclockui.WithLogger(nil)),
		"no origin":    handler(asynclockui.WithOrigin("admin.example")),
		"no prefix":    handler(asynclockui.WithPrefix("\xff")),
		"empty key":    handler(asynclockui.WithJobs("")),
		"long key":     handler(asynclockui.WithElections(strings.Repeat("k", store.MaxKeyLen+1))),
		"other prefix": handler(asynclockui.WithJobs("other/job"), asynclockui.WithPrefix("our/")),
	} {
		if h, err := make(); h != nil || !errors.Is(err, asynclock.ErrInvalidOption) {
			t.Errorf("%s: got %v, %v, want ErrInvalidOption", name, h, err)
		}
	}
}

// TestZeroClient: a page of a client that was never made says so.
func TestZeroClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page, err := asynclockui.Handler(new(asynclock.Client), asynclockui.Everybody, asynclockui.WithJobs("job"))
	if err != nil {
		t.Fatal(err)
	}
	w.page = page
	for _, address := range []string{"", "key?key=k", "jobs"} {
		w.has(w.get(http.StatusOK, address), "may be old or incomplete", "New")
	}
	w.get(http.StatusOK, "stats")
}

// TestWhoMaySee: whoever may not see the page gets nothing of it, and changes nothing.
func TestWhoMaySee(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lock(w.theirs, "secret")
	var err error
	w.page, err = asynclockui.Handler(w.ours, func(r *http.Request) bool { return r.Header.Get("User") == "admin" }, asynclockui.WithForceUnlock(), asynclockui.WithChecks(w.store))
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"", "key?key=secret", "jobs", "stats", "checks", "unlock?key=secret", "events?page=locks", "live.js", "none"} {
		w.has(w.get(http.StatusForbidden, address), "!secret")
		w.post(http.StatusForbidden, address, nil)
	}
	if n := w.store.lists.Load(); n != 0 {
		t.Errorf("got %d lists, want none", n)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("User", "admin")
	w.has(w.answer(http.StatusOK, r), "secret")
}

// TestReadsOnly: nothing else is there unless it was allowed.
func TestReadsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lease := w.lock(w.theirs, "k")
	w.has(w.get(http.StatusOK, "key?key=k"), "theirs", "!unlock", "!checks")
	for _, address := range []string{"unlock?key=k", "checks"} {
		w.get(http.StatusNotFound, address)
		w.post(http.StatusNotFound, address, typed(lease, "k"))
	}
	for _, address := range []string{"", "key?key=k", "stats", "none"} {
		w.post(http.StatusNotFound, address, nil)
	}
	if !lease.Valid(0) {
		t.Error("the lease was lost")
	}
}

// TestForeignRequests: a page of another site can send nothing in the name of who sees this one, and show nothing of it.
func TestForeignRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asynclockui.WithForceUnlock())
	lease := w.lock(w.theirs, "k")
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://other.example"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/unlock", strings.NewReader(typed(lease, "k").Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(name, value)
		w.answer(http.StatusForbidden, r)
	}
	w.answer(http.StatusMethodNotAllowed, httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "/key?key=k", nil))
	if !lease.Valid(0) {
		t.Error("the lease was lost")
	}
	got := httptest.NewRecorder()
	w.page.ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	for name, want := range map[string]string{
		"Content-Security-Policy": "frame-ancestors 'none'", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
	} {
		if header := got.Header().Get(name); !strings.Contains(header, want) {
			t.Errorf("%s: got %q, want %s", name, header, want)
		}
	}
}

// TestMounted: all links are relative, so it does not matter where the page is mounted, and whether its path is cut off.
func TestMounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asynclockui.WithChecks(memstore.New()), asynclockui.WithJobs("job"))
	w.lock(w.theirs, "k")
	mux := http.NewServeMux()
	mux.Handle("/cut/", http.StripPrefix("/cut", w.page))
	mux.Handle("/whole/", w.page)
	mux.Handle("/a%2Fb/", w.page)
	mux.Handle("/", w.page)
	w.page = mux
	for _, at := range []string{"", "cut/", "whole/", "a%2Fb/"} {
		w.has(w.get(http.StatusOK, at), `href="key?key=k"`, `href="./"`, `action="key"`, `href="style.css"`, `"events?page=locks"`, `!href="/`, `!action="/`)
		w.has(w.get(http.StatusOK, at+"key?key=k"), "theirs")
		w.has(w.get(http.StatusOK, at+"style.css"), "color-scheme")
		w.has(w.get(http.StatusOK, at+"live.js"), "EventSource")
		w.has(w.get(http.StatusNotFound, at+"locks.html"), "no such page")
		w.get(http.StatusNotFound, at+"x%2Fkey?key=k")
	}
}

// TestMountedWithoutSlash: the links of the page would lead elsewhere, so it is shown at the address with a slash.
func TestMountedWithoutSlash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for address, want := range map[string]string{
		"/admin/locks": "/admin/locks/", "/admin/locks?q=a": "/admin/locks/?q=a", "http://example.com/admin/a%2Fb": "/admin/a%2Fb/",
		"/admin/locks/": "", "//host": "", `/\host`: "/%5Chost/",
	} {
		r, got := httptest.NewRequestWithContext(t.Context(), http.MethodGet, address, nil), httptest.NewRecorder()
		r.URL.Path, r.URL.RawPath = "", "" // all of it was cut off
		w.page.ServeHTTP(got, r)
		if to := got.Header().Get("Location"); to != want {
			t.Errorf("%s: got a redirect to %q, want %q", address, to, want)
		}
	}
}

// TestRequestOfItsOwn: the handler takes a request that only a program can have made, and leaves it as it is.
func TestRequestOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asynclockui.WithForceUnlock())
	for _, body := range []io.ReadCloser{nil, io.NopCloser(strings.NewReader("key=k"))} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/unlock", nil)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Body = body
		if w.answer(http.StatusBadRequest, r); r.Body != body {
			t.Errorf("got body %v, want %v as it was", r.Body, body)
		}
	}
}

// TestTrustedOrigin: a proxy may change the host, which a browser without TLS leaves to be compared.
func TestTrustedOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.page = w.handler(asynclockui.WithChecks(w.store), asynclockui.WithOrigin("http://admin.example"))
	for origin, status := range map[string]int{"http://admin.example": http.StatusOK, "http://other.example": http.StatusForbidden} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/checks", nil)
		r.Header.Set("Origin", origin)
		w.answer(status, r)
	}
}
