// SPDX-License-Identifier: Apache-2.0

package asynclockui

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	eventPause = time.Second
	// streamTime is how long one stream lasts. The browser then asks for another one. So a server that shuts down waits
	// for no longer than that.
	streamTime = 20 * time.Second
	// pollPause is how long a browser waits before it asks again, where something around the handler keeps an answer back
	// until it is complete.
	pollPause   = 3 * time.Second
	mostStreams = 64
)

// sendEvents keeps a page up to date: it sends the body each time that it has changed, as server-sent events.
func (p *page) sendEvents(w http.ResponseWriter, r *http.Request) {
	name, about, view := p.liveView(r)
	if view == nil {
		p.fail(w, http.StatusNotFound, "There are no such events.")
		return
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		w.Header().Set("Retry-After", "10")
		p.fail(w, http.StatusServiceUnavailable, "Too many look at this page.")
		return
	}
	if about != "" {
		var leave func()
		view, leave = p.shared.join(about, view)
		defer leave()
	}
	stream := http.NewResponseController(w)
	prolong(w, streamTime+2*askTime)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies would wait for the end
	err := p.sendBodies(r.Context(), w, stream, name, view)
	pause := time.Duration(0)
	switch {
	case errors.Is(err, http.ErrNotSupported): // all is sent at the end
		pause = pollPause
	case err != nil:
		return // nobody is there any more, or it can't be sent
	}
	_, _ = fmt.Fprintf(w, "event: end\ndata: %d\n\n", pause.Milliseconds())
	_ = stream.Flush()
}

// sendBodies sends the body when it has changed, and otherwise that it is the same.
func (p *page) sendBodies(ctx context.Context, w http.ResponseWriter, stream *http.ResponseController, name string, view look) error {
	ticks, end := time.NewTicker(eventPause), time.Now().Add(streamTime)
	defer ticks.Stop()
	for last := []byte(nil); time.Now().Before(end); {
		v, err := view(ctx)
		if err != nil {
			return err
		}
		body, err := render(name, v)
		if err != nil {
			return err
		}
		event := []byte("event: same\ndata:\n\n")
		if !bytes.Equal(body, last) {
			last = body
			event = fmt.Appendf(nil, "event: body\ndata: %s\n\n", bytes.ReplaceAll(bytes.TrimSpace(body), []byte("\n"), []byte("\ndata: ")))
		}
		_, err = w.Write(event)
		if err = cmp.Or(err, stream.Flush()); err != nil {
			return err
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// liveView returns the template of the page that the events are for, and what it shows. All streams about the same share what
// they ask the store; those about nothing ask it nothing by themselves.
func (p *page) liveView(r *http.Request) (name, about string, view look) {
	q := r.URL.Query()
	switch name = q.Get("page"); name {
	case "locks":
		return name, "", func(ctx context.Context) (any, error) { return p.locksView(ctx, choiceOf(q)) }
	case "key":
		if key := q.Get("key"); p.shows(key) {
			return name, "key " + key, func(ctx context.Context) (any, error) { return p.keyView(ctx, key) }
		}
	case "jobs":
		return name, "jobs", func(ctx context.Context) (any, error) { return p.jobsView(ctx), nil }
	case "stats":
		return name, "", func(context.Context) (any, error) { return p.statsView() }
	}
	return "", "", nil
}
