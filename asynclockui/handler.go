// SPDX-License-Identifier: Apache-2.0

package asynclockui

import (
	"embed"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/asynclock/asynclock-go/asynclock"
)

//go:embed pages
var files embed.FS

// Everybody is for [Handler] where whoever can send a request may see the page: behind something that decides that.
func Everybody(*http.Request) bool { return true }

// Handler returns the page. Mount it on a path that ends in a slash, with or without http.StripPrefix. It is safe for
// concurrent use, and starts no goroutine.
//
// May decides for each request whether whoever sent it may see the page. It is asked before anything else is done, and may
// be called from several goroutines. Requests that it refuses get the status 403. There is no default: locks tell much of
// what a service does. [Everybody] says that something else decides.
//
// The page needs the client, and says so when that is closed. A browser that looks keeps a request open for 20 s, so
// http.Server.Shutdown may take as long. It takes less if the requests' contexts end with it (http.Server.BaseContext).
//
// The error is [asynclock.ErrInvalidOption] for a nil argument or a bad option.
func Handler(locks *asynclock.Client, may func(*http.Request) bool, options ...Option) (http.Handler, error) {
	s, err := newSettings(options)
	switch {
	case locks == nil:
		err = errors.Join(err, invalid("nil client"))
	case may == nil:
		err = errors.Join(err, invalid("nobody decides who may see the page; Everybody says that all may"))
	}
	if err != nil {
		return nil, err
	}
	return &page{
		settings: s, locks: locks, may: may,
		checking: make(chan struct{}, 1), streams: make(chan struct{}, mostStreams), live: newLive(locks, s.prefix),
		shared: shared{answers: make(map[string]*answer)},
	}, nil
}

// A page is the handler.
type page struct {
	settings

	locks    *asynclock.Client
	may      func(*http.Request) bool
	live     *live
	shared   shared
	checking chan struct{} // has room for one check
	streams  chan struct{} // and for so many streams of events
}

// mostForm is how large a form may be. Keys have at most a kilobyte.
const mostForm = 1 << 16

// headers are sent with everything. The page loads nothing from elsewhere, and is loaded by nobody else's.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"Cache-Control":                "no-store",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
}

// ServeHTTP serves a page. Its name is the last part of the path, so it does not matter where the handler is mounted.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	prolong(w, 3*askTime)
	r = r.WithContext(r.Context()) // a copy: the request is the caller's
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	}
	if !p.may(r) {
		http.Error(w, "You may not see this page.", http.StatusForbidden)
		return
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !reads && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "The page has no such method.", http.StatusMethodNotAllowed)
		return
	}
	if err := p.crossOrigin.Check(r); err != nil {
		http.Error(w, "Another site has sent this request.", http.StatusForbidden)
		return
	}
	serve := p.find(nameOf(r), reads)
	if at, missing := withSlash(r); missing {
		http.Redirect(w, r, at, http.StatusFound)
		return
	}
	if serve == nil || strings.Contains(strings.ToLower(afterSlash(r.URL.EscapedPath())), "%2f") { // a name with a slash is no name here
		p.fail(w, http.StatusNotFound, "There is no such page.")
		return
	}
	serve(w, r)
}

// find returns what serves the page of that name; nil for none.
func (p *page) find(name string, reads bool) http.HandlerFunc {
	if !reads {
		switch {
		case name == "unlock" && p.force:
			return p.unlock
		case name == "checks" && p.store != nil:
			return p.check
		}
		return nil
	}
	switch name {
	case "":
		return p.showLocks
	case "key":
		return p.showKey
	case "jobs":
		return p.showJobs
	case "stats":
		return p.showStats
	case "events":
		return p.sendEvents
	case "style.css", "live.js":
		return serveFile
	}
	switch {
	case name == "unlock" && p.force:
		return p.showUnlock
	case name == "checks" && p.store != nil:
		return p.showChecks
	}
	return nil
}

// withSlash returns the address of the page if the request has the path at which it is mounted, without the slash at its
// end. A handler that cuts paths off may pass such requests on. Without the slash no link of the page would lead to it.
func withSlash(r *http.Request) (address string, missing bool) {
	asked, err := url.ParseRequestURI(r.RequestURI)
	if err != nil || r.URL.Path != "" && r.URL.Path != "/" {
		return "", false
	}
	address = asked.EscapedPath() + "/" // of another host if it began with two slashes
	missing = strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "//") && !strings.HasSuffix(address, "//")
	if asked.RawQuery != "" {
		address += "?" + asked.RawQuery
	}
	return address, missing
}

func nameOf(r *http.Request) string { return afterSlash(r.URL.Path) }

func afterSlash(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

func serveFile(w http.ResponseWriter, r *http.Request) {
	http.ServeFileFS(w, r, files, "pages/"+nameOf(r))
}

func (p *page) log() *slog.Logger {
	if p.logger == nil {
		return slog.Default()
	}
	return p.logger
}
