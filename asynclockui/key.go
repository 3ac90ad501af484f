// SPDX-License-Identifier: Apache-2.0

package asynclockui

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/board"
	"github.com/asynclock/asynclock-go/internal/plain"
	"github.com/asynclock/asynclock-go/once"
)

// A keyView is what the template key shows.
type keyView struct {
	Key     string // as it is shown
	Facts   []fact
	Holders []string // if several share it
	Queue   []string // in order
	More    int      // who wait behind these
	Problem string
	Why     string // the address of a page that finds out why it is waited for; empty: there is none
	Force   string // and of one that takes it from its holder
}

// A fact is a line of a page.
type fact struct{ Name, Text string }

func (p *page) showKey(w http.ResponseWriter, r *http.Request) {
	key, ok := p.key(w, r)
	if !ok {
		return
	}
	p.showLive(w, r, "key", url.Values{"key": {key}}.Encode(), plain.Text(key),
		func(ctx context.Context) (any, error) { return p.keyView(ctx, key) })
}

// key returns the key that the request is about. It has answered if that is none of ours.
func (p *page) key(w http.ResponseWriter, r *http.Request) (key string, ok bool) {
	key = r.FormValue("key")
	switch {
	case key == "":
		p.fail(w, http.StatusBadRequest, "The address names no key.")
	case !p.shows(key):
		p.fail(w, http.StatusForbidden, "This page does not show keys with such names.")
	default:
		return key, true
	}
	return "", false
}

func (p *page) keyView(ctx context.Context, key string) (keyView, error) {
	v := keyView{Key: plain.Text(key)}
	if p.store != nil {
		v.Why = addressOf("checks", key)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	info, err := p.locks.Inspect(ctx, key)
	if err != nil {
		v.Problem = problem(err)
		return v, nil
	}
	if p.force && info.Held {
		v.Force = addressOf("unlock", key)
	}
	v.addInfo(&info)
	note, err := p.locks.Note(ctx, key)
	switch {
	case errors.Is(err, asynclock.ErrUnsupported):
	case err != nil:
		v.Problem = problem(err)
	case len(note.Data) > 0:
		v.addNote(ctx, p.locks, key, note)
	}
	return v, nil
}

func (v *keyView) add(name, text string) { v.Facts = append(v.Facts, fact{name, text}) }

func (v *keyView) addInfo(info *asynclock.Info) {
	if !info.Held {
		v.add("Holder", "nobody")
	} else {
		v.add("Holder", plain.Text(info.Holder))
		v.add("Mode", info.Mode.String())
		v.add("Token", number(info.Token))
		v.add("TTL left", plain.TTL(info.Remaining))
	}
	if info.Limit > 0 {
		v.add("Permits", number(int64(info.Used))+" of "+number(int64(info.Limit)))
	}
	v.add("Waiting", number(int64(info.Waiters)))
	if info.Mode != asynclock.Exclusive {
		for _, h := range info.Holders {
			text := plain.Text(h.Holder) + ", token " + number(h.Token)
			if h.Weight > 0 {
				text += ", permits " + number(int64(h.Weight))
			}
			v.Holders = append(v.Holders, text)
		}
	}
	for _, w := range info.Queue {
		v.Queue = append(v.Queue, plain.Text(w.Holder)+", for "+plain.Seconds(w.Age))
	}
	v.More = max(info.Waiters-len(info.Queue), 0)
}

// mostNote is how much of a note is shown.
const mostNote = 200

// addNote shows a note. That of a job is the record of its last run. That of an election is the leader's value.
func (v *keyView) addNote(ctx context.Context, locks *asynclock.Client, key string, note asynclock.Note) {
	if run, err := once.LastRun(ctx, locks, key); err == nil && !run.Start.IsZero() {
		v.Facts = append(v.Facts, runFacts(ctx, locks, key, run)...)
		return
	}
	v.add("Note", plain.Start(string(note.Data), mostNote))
	v.add("Note by token", number(note.Token))
}

func runFacts(ctx context.Context, locks *asynclock.Client, key string, run once.RunInfo) []fact {
	facts := []fact{
		{"Interval", plain.Stamp(run.Start)},
		{"Run began", plain.Stamp(run.Began)},
		{"Run ended", board.EndOf(ctx, locks, key, run, func() (once.RunInfo, error) { return once.LastRun(ctx, locks, key) })},
		{"Run by", plain.Text(run.By)},
		{"Attempt", number(int64(run.Attempt))},
		{"Missed before", number(int64(run.Missed))},
	}
	if run.Failed {
		facts = append(facts, fact{"Run failed", plain.Text(run.Message)})
	}
	return facts
}
