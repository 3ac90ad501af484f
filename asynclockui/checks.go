// SPDX-License-Identifier: Apache-2.0

package asynclockui

import (
	"context"
	"net/http"
	"time"

	"github.com/asynclock/asynclock-go/doctor"
	"github.com/asynclock/asynclock-go/internal/plain"
)

// checkTime bounds a check. [doctor.Check] takes half a minute at most.
const checkTime = 40 * time.Second

// A checksView is what the template checks shows.
type checksView struct {
	Key      string // empty: the store is checked
	Shown    string // the key, as it is shown
	Address  string // of its page
	Form     string // the address of the form
	Findings []doctor.Finding
	Done     bool
	Problem  string
}

func (p *page) showChecks(w http.ResponseWriter, r *http.Request) {
	v, ok := p.checksView(w, r)
	if ok {
		p.show(w, http.StatusOK, "checks", v)
	}
}

func (p *page) checksView(w http.ResponseWriter, r *http.Request) (v checksView, ok bool) {
	if v.Form = "checks"; r.FormValue("key") == "" {
		return v, true
	}
	v.Key, ok = p.key(w, r)
	v.Shown, v.Address, v.Form = plain.Text(v.Key), addressOf("key", v.Key), addressOf("checks", v.Key)
	return v, ok
}

// check checks the store, or finds out why a key is waited for.
func (p *page) check(w http.ResponseWriter, r *http.Request) {
	v, ok := p.checksView(w, r)
	if !ok {
		return
	}
	select {
	case p.checking <- struct{}{}:
		defer func() { <-p.checking }()
	default:
		p.fail(w, http.StatusTooManyRequests, "Somebody checks already. Try again in a few seconds.")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), checkTime)
	defer cancel()
	prolong(w, checkTime+askTime)
	var err error
	if v.Key == "" {
		v.Findings, err = doctor.Check(ctx, p.store, doctor.WithPrefix(p.prefix))
	} else {
		v.Findings, err = doctor.Why(ctx, p.store, v.Key)
	}
	v.Done, v.Problem = true, problem(err)
	p.show(w, http.StatusOK, "checks", v)
}
