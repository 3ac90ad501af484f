// SPDX-License-Identifier: Apache-2.0

package asynclockui

import (
	"bytes"
	"html/template"
	"net/http"
	"time"
)

var templates = template.Must(template.ParseFS(files, "pages/*.html"))

// A frame is what the template page puts around the others.
type frame struct {
	Name   string // of the page, and of its template
	Body   template.HTML
	About  any    // what the page is about, for what is beside the body
	Events string // the address of what keeps the body up to date; empty: nothing does
	Still  bool   // the user has paused it

	StillAddress string // of the paused page

	Jobs, Checks bool // there are such pages
}

// show sends a page. It is made before anything is sent, so an error is seen as one.
func (p *page) show(w http.ResponseWriter, status int, name string, view any) {
	p.send(w, status, frame{Name: name, About: view}, view)
}

func (p *page) send(w http.ResponseWriter, status int, f frame, view any) {
	body, err := render(f.Name, view)
	if err == nil {
		f.Body, f.Jobs, f.Checks = template.HTML(body), len(p.jobs)+len(p.elections) > 0, p.store != nil //nolint:gosec // our own template has made it
		body, err = render("page", f)
	}
	if err != nil {
		http.Error(w, "The page can't be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func render(name string, view any) ([]byte, error) {
	var out bytes.Buffer
	err := templates.ExecuteTemplate(&out, name, view)
	return out.Bytes(), err
}

// fail sends a page that says what is wrong.
func (p *page) fail(w http.ResponseWriter, status int, text string) {
	p.show(w, status, "failed", text)
}

// showLive sends a page that is kept up to date. Its address, below that of its events, is that of what it shows.
func (p *page) showLive(w http.ResponseWriter, r *http.Request, name, address string, about any, view look) {
	v, err := view(r.Context())
	if err != nil {
		p.fail(w, http.StatusServiceUnavailable, "The page can't be shown: "+problem(err))
		return
	}
	f := frame{Name: name, About: about, Events: "events?page=" + name, Still: r.URL.Query().Has("still"), StillAddress: "./?still"}
	if name != "locks" {
		f.StillAddress = name + "?still"
	}
	if address != "" {
		f.Events += "&" + address
		f.StillAddress += "&" + address
	}
	p.send(w, http.StatusOK, f, v)
}

// prolong lets the server take so long for an answer, whatever its own limit is.
func prolong(w http.ResponseWriter, d time.Duration) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(d)) // a server without deadlines needs none
}
