// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/doctor"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world is a store behind a bad network, in a bubble.
type world struct {
	*testing.T
	memory *memstore.Store
	bad    *asynclocktest.Store // over memory
	clinic *clinic              // over bad
}

// story tells a story in a bubble, where time costs nothing. In the end no scratch key may be left.
func story(t *testing.T, tell func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		memory := memstore.New()
		bad := asynclocktest.Wrap(memory)
		w := &world{T: t, memory: memory, bad: bad, clinic: &clinic{Store: bad, features: memory.Features()}}
		tell(w)
		w.wantNothingLeft()
	})
}

func (w *world) wantNothingLeft() {
	w.Helper()
	for info, err := range w.session().List(w.Context(), doctor.ScratchPrefix) {
		w.Errorf("got %+v and error %v left behind, want nothing", info, err)
	}
}

// session returns a session without faults.
func (w *world) session() store.Session {
	w.Helper()
	session, err := w.memory.Open("a test", func(store.Event) {})
	if err != nil {
		w.Fatal(err)
	}
	return session
}

// ask requests a key for an owner, and expects this status.
func (w *world) ask(q store.AcquireRequest, want store.AcquireStatus) {
	w.Helper()
	if q.TTL == 0 {
		q.TTL, q.GrantTTL, q.WaiterTTL = time.Minute, time.Minute, time.Minute
	}
	if got := w.session().Acquire(w.Context(), []store.AcquireRequest{q})[0]; got.Err != nil || got.Status != want {
		w.Fatalf("Acquire of %q: got status %v, error %v; want status %v", q.Key, got.Status, got.Err, want)
	}
}

// hold lets owner hold a key, and lets others wait for it.
func (w *world) hold(key, owner string, waiters ...string) {
	w.Helper()
	w.ask(store.AcquireRequest{Key: key, Owner: owner, Description: owner}, store.Granted)
	for _, other := range waiters {
		w.ask(store.AcquireRequest{Key: key, Owner: other, Description: other, Wait: true}, store.Waiting)
	}
}

// check returns the findings about the store.
func (w *world) check(opts ...doctor.Option) findings {
	w.Helper()
	got, err := doctor.Check(w.Context(), w.clinic, opts...)
	if err != nil {
		w.Fatal(err)
	}
	return got
}

// why returns the findings about a key.
func (w *world) why(key string) findings {
	w.Helper()
	got, err := doctor.Why(w.Context(), w.clinic, key)
	if err != nil {
		w.Fatal(err)
	}
	return got
}

type findings []doctor.Finding

// String returns what doctor prints.
func (all findings) String() string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "\n%v %s: %s [%s]", f.Verdict, f.Check, f.Fact, f.Fix)
	}
	return b.String()
}

// want checks that there is a finding with this beginning, with a fix if it is worse than a note.
func (all findings) want(t *testing.T, begins ...string) {
	t.Helper()
	for _, text := range begins {
		found := false
		for _, f := range all {
			if strings.HasPrefix(fmt.Sprintf("%v %s: %s", f.Verdict, f.Check, f.Fact), text) {
				found = true
				if f.Verdict > doctor.Note && f.Fix == "" {
					t.Errorf("got no fix of %q", text)
				}
			}
		}
		if !found {
			t.Errorf("got %v\nwant %q", all, text)
		}
	}
}

// wantChecks checks the verdicts and the names of all findings, in their order.
func (all findings) wantChecks(t *testing.T, want string) {
	t.Helper()
	var got []string
	for _, f := range all {
		got = append(got, f.Verdict.String()+" "+f.Check)
	}
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got %s\nwant %s\nfindings: %v", text, want, all)
	}
}

// A clinic changes what a store says.
type clinic struct {
	store.Store

	features store.Features
	opens    func(n int) error                                                     // or nil; from 0
	acquired func(q store.AcquireRequest, r store.AcquireReply) store.AcquireReply // or nil
	listed   []listing                                                             // instead of what is there, if not nil
	shown    []store.Info                                                          // instead of what Inspect shows, if not nil
	grace    func() (left time.Duration, begun bool, err error)                    // or nil: none
	opened   int
}

type listing struct {
	info store.Info
	err  error
}

func (c *clinic) Features() store.Features { return c.features }

func (c *clinic) Open(id string, notify func(store.Event)) (store.Session, error) {
	if c.opens != nil {
		if err := c.opens(c.opened); err != nil {
			return nil, err
		}
	}
	c.opened++
	session, err := c.Store.Open(id, notify)
	return &patient{session, c}, err
}

type patient struct {
	store.Session

	clinic *clinic
}

func (p *patient) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	replies := p.Session.Acquire(ctx, batch)
	for i := range replies {
		if p.clinic.acquired != nil {
			replies[i] = p.clinic.acquired(batch[i], replies[i])
		}
	}
	return replies
}

func (p *patient) Grace(context.Context, string) (time.Duration, bool, error) {
	if p.clinic.grace == nil {
		return 0, false, nil
	}
	return p.clinic.grace()
}

func (p *patient) Inspect(ctx context.Context, key string) (store.Info, error) {
	info, err := p.Session.Inspect(ctx, key)
	if shown := p.clinic.shown; shown != nil {
		info, p.clinic.shown = shown[0], shown[min(1, len(shown)-1):]
	}
	return info, err
}

func (p *patient) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	if p.clinic.listed == nil {
		return p.Session.List(ctx, prefix)
	}
	return func(yield func(store.Info, error) bool) {
		for _, l := range p.clinic.listed {
			if !yield(l.info, l.err) {
				return
			}
		}
	}
}
