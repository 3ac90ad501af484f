// SPDX-License-Identifier: Apache-2.0

package elect_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/store"
)

func TestOneOfTheCandidatesLeads(t *testing.T) {
	story(t, func(w *world) {
		a, b, other := w.run(w.client(), elect.WithValue([]byte("a"))), w.run(w.client(), elect.WithValue([]byte("b"))), w.client()
		first := a.leads()
		b.wantTerms(0)
		w.wantLeader(other, first.Token(), "a")
		w.pass(10 * ttl)
		b.wantTerms(0)
		a.cancel()
		w.wantError(a.over()) // its function's
		second := b.leads()
		if second.Token() <= first.Token() {
			w.Errorf("number of the second term: got %d, want more than %d", second.Token(), first.Token())
		}
		w.wantLeader(other, second.Token(), "b")
	})
}

// The leader steps down, and is behind the others then.
func TestWhoHasResignedIsBehindTheOthers(t *testing.T) {
	story(t, func(w *world) {
		other := w.client()
		all := []*runner{w.run(w.client()), w.run(w.client()), w.run(w.client())}
		last := int64(0)
		for i := range 3 * len(all) {
			r := all[i%len(all)]
			term := r.leads()
			if term.Token() <= last {
				w.Errorf("number of term %d: got %d, want more than %d", i, term.Token(), last)
			}
			last = term.Token()
			w.wantLeader(other, last, "")
			r.ends <- nil
		}
		for _, r := range all {
			r.wantTerms(3 + map[bool]int{true: 1}[r == all[0]])
		}
	})
}

// The key may pass inside their client, but each term is in the store before it begins.
func TestCandidatesOfOneClientTakeTurns(t *testing.T) {
	story(t, func(w *world) {
		c, other := w.client(), w.client()
		all := []*runner{w.run(c, elect.WithValue([]byte("0"))), w.run(c, elect.WithValue([]byte("1")))}
		for i := range 10 {
			w.wantLeader(other, all[i%2].leads().Token(), string('0'+rune(i%2)))
			all[i%2].ends <- nil
		}
	})
}

func TestAloneTheSameCandidateLeadsAgain(t *testing.T) {
	story(t, func(w *world) {
		r, other := w.run(w.client(asynclock.WithRetention(time.Hour))), w.client()
		first := r.leads()
		r.ends <- nil
		second := r.leads()
		if second == first || second.Token() <= first.Token() {
			w.Errorf("number of the next term: got %d, want more than %d", second.Token(), first.Token())
		}
		w.wantLeader(other, second.Token(), "")
		w.wantError(first.Err(), asynclock.ErrUnlocked)
	})
}

func TestTheFunctionMayResignItself(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.run(w.client()), w.run(w.client())
		term := a.leads()
		for range 2 {
			if err := term.Resign(w.Context()); err != nil {
				w.Errorf("Resign: got %v, want no error", err)
			}
		}
		b.leads()
		if err := term.Proclaim(w.Context(), []byte("late")); !errors.Is(err, asynclock.ErrUnlocked) {
			w.Errorf("Proclaim after Resign: got %v, want ErrUnlocked", err)
		}
		// The context of its function has ended with the term. So its error is no fault of a loss.
		if err := a.over(); err == nil || err.Error() != "told to end" {
			w.Errorf("Run: got %v, want the function's error", err)
		}
	})
}

func TestRunEndsWithTheFunctionsError(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.run(w.client()), w.run(w.client())
		a.leads()
		failure := errors.New("no disk")
		a.ends <- failure
		w.wantError(a.over(), failure)
		b.leads()
		b.ends <- elect.ErrResign
		if err := b.over(); err != nil {
			w.Errorf("Run after ErrResign: got %v, want nil", err)
		}
		w.wantLeader(w.client(), 0, "")
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.run(w.client()), w.run(w.client())
		b.cancel() // while it waits
		w.wantError(b.over(), context.Canceled)
		a.leads()
	})
}

// An outage of the store ends a term, not the campaign.
func TestAnOutageEndsATermAndNotTheCampaign(t *testing.T) {
	story(t, func(w *world) {
		a, b := w.run(w.client()), w.run(w.client())
		first := a.leads()
		stop := w.store.Every(nil, asynclocktest.Refuse)
		w.pass(3 * time.Minute)
		w.wantError(first.Err(), asynclock.ErrNotRenewed)
		a.goesOn()
		b.goesOn()
		stop()
		w.pass(6 * time.Second)
		led := slices.Concat(a.led()[1:], b.led())
		if len(led) != 1 || !led[0].Valid(0) || led[0].Token() <= first.Token() {
			w.Errorf("terms after the outage: got %d, want 1 with a larger number than %d", len(led), first.Token())
		}
	})
}

// A candidate that was cut off does not keep the leadership, and its successor's value stays.
func TestALeaderThatWasCutOff(t *testing.T) {
	story(t, func(w *world) {
		a := w.run(w.client(), elect.WithValue([]byte("a")))
		other := w.client()
		first := a.leads()
		stop := w.store.Every(asynclocktest.Match(nil).From(0), asynclocktest.Hang)
		b := w.run(w.client(), elect.WithValue([]byte("b")))
		w.pass(ttl + 2*time.Second)
		second := b.leads()
		if first.Err() == nil {
			w.Error("the term of a leader that was cut off has not ended")
		}
		w.wantError(first.Proclaim(w.Context(), []byte("late")), asynclock.ErrLost)
		stop()
		w.pass(ttl)
		w.wantLeader(other, second.Token(), "b")
		a.goesOn()
	})
}

// Each term has its value before the function is called.
func TestATermBeginsWithItsNote(t *testing.T) {
	story(t, func(w *world) {
		stop := w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Hang)
		r := w.run(w.client(), elect.WithValue([]byte("a")))
		w.pass(5 * time.Second)
		r.wantTerms(0)
		stop()
		w.pass(2 * time.Second)
		r.leads()
	})
}

func TestProclaim(t *testing.T) {
	story(t, func(w *world) {
		r, other := w.run(w.client(), elect.WithValue([]byte("first"))), w.client()
		term := r.leads()
		value := []byte("second")
		if err := term.Proclaim(w.Context(), value); err != nil {
			w.Fatal(err)
		}
		copy(value, "XXXXXX")
		w.wantLeader(other, term.Token(), "second")
		w.wantError(term.Proclaim(w.Context(), make([]byte, asynclock.MaxNoteLen+1)), asynclock.ErrInvalidOption)
		w.wantError(term.Proclaim(nil, nil), asynclock.ErrInvalidOption) //nolint:staticcheck // that is the point
		w.pass(25 * time.Hour)                                           // longer than a note is kept
		w.wantLeader(other, term.Token(), "second")
	})
}

// A note that is being written again holds up a Proclaim no longer than its context lasts.
func TestProclaimIsBounded(t *testing.T) {
	story(t, func(w *world) {
		r := w.run(w.client())
		term := r.leads()
		w.store.Every(asynclocktest.WriteNote.Any, asynclocktest.Hang)
		w.pass(time.Minute + time.Second)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		start := time.Now()
		w.wantError(term.Proclaim(ctx, nil), context.DeadlineExceeded)
		if took := time.Since(start); took != time.Second {
			w.Errorf("Proclaim took %v, want 1s", took)
		}
	})
}

// A note that the store has lost is there again after a minute.
func TestALeaderWritesItsNoteAgain(t *testing.T) {
	story(t, func(w *world) {
		r := w.run(w.client(), elect.WithValue([]byte("a")))
		term := r.leads()
		if err := term.SetNote(w.Context(), []byte("overwritten"), time.Hour); err != nil {
			w.Fatal(err)
		}
		w.pass(time.Minute)
		w.wantLeader(w.client(), term.Token(), "a")
		n := len(w.store.Calls(asynclocktest.WriteNote.Any))
		r.cancel()
		_ = r.over()
		w.pass(time.Hour)
		if got := len(w.store.Calls(asynclocktest.WriteNote.Any)); got != n {
			w.Errorf("notes after the end of the term: got %d more, want none", got-n)
		}
	})
}

func TestThePanicOfTheFunctionGivesTheLeadershipOn(t *testing.T) {
	story(t, func(w *world) {
		func() {
			defer func() {
				if recover() == nil {
					w.Error("the panic was swallowed")
				}
			}()
			_ = elect.Run(w.Context(), w.client(), key, func(context.Context, *elect.Term) error { panic("no disk") })
		}()
		w.run(w.client()).leads()
	})
}

func TestADefaultWaitOfTheClientEndsNoCampaign(t *testing.T) {
	story(t, func(w *world) {
		a := w.run(w.client())
		b := w.run(w.client(asynclock.WithWait(0)))
		n := len(w.store.Calls(asynclocktest.Acquire.From(1)))
		w.pass(time.Second)
		if got := len(w.store.Calls(asynclocktest.Acquire.From(1))); n != 1 || got != 1 {
			w.Errorf("requests of a waiting candidate in a second: got %d, want 1", got)
		}
		a.cancel()
		b.leads()
	})
}

// A campaign under a term of the same key would wait for that term, so it fails at once. It never joins the term.
func TestACampaignUnderATermIsRefused(t *testing.T) {
	story(t, func(w *world) {
		c := w.client(asynclock.WithReentry(true))
		err := elect.Run(w.Context(), c, key, func(ctx context.Context, term *elect.Term) error {
			start := time.Now()
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			err := elect.Run(ctx, c, key, func(context.Context, *elect.Term) error { return errors.New("led twice") })
			w.wantError(err, asynclock.ErrReentry)
			_, err = (<-elect.Campaign(ctx, c, key)).Term()
			w.wantError(err, asynclock.ErrReentry)
			if took := time.Since(start); took != 0 {
				w.Errorf("the refusals took %v, want no time", took)
			}
			return elect.ErrResign
		})
		w.wantError(err)
		if err != nil {
			w.Errorf("Run: got %v, want nil", err)
		}
	})
}

func TestBadInput(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		lead := func(context.Context, *elect.Term) error { return errors.New("led") }
		for name, err := range map[string]error{
			"a nil context":   elect.Run(nil, c, key, lead), //nolint:staticcheck // that is the point
			"a nil client":    elect.Run(w.Context(), nil, key, lead),
			"a nil function":  elect.Run(w.Context(), c, key, nil),
			"a nil option":    elect.Run(w.Context(), c, key, lead, nil),
			"a long value":    elect.Run(w.Context(), c, key, lead, elect.WithValue(make([]byte, asynclock.MaxNoteLen+1))),
			"a bad interval":  elect.Run(w.Context(), c, key, lead, elect.WithInterval(0)),
			"a long interval": elect.Run(w.Context(), c, key, lead, elect.WithInterval(2*elect.MaxInterval)),
			"a bad TTL":       elect.Run(w.Context(), c, key, lead, elect.WithLockOptions(asynclock.WithTTL(0))),
		} {
			if !errors.Is(err, asynclock.ErrInvalidOption) {
				w.Errorf("Run with %s: got %v, want ErrInvalidOption", name, err)
			}
		}
		w.wantError(elect.Run(w.Context(), c, "", lead), asynclock.ErrInvalidKey)
		_, err := elect.Observe(w.Context(), c, key, elect.WithInterval(0))
		w.wantError(err, asynclock.ErrInvalidOption)
		_, err = elect.Observe(w.Context(), c, "")
		w.wantError(err, asynclock.ErrInvalidKey)
		_, err = elect.Current(w.Context(), nil, key)
		w.wantError(err, asynclock.ErrInvalidOption)
		_, err = elect.Elected{}.Term()
		w.wantError(err, elect.ErrNotLeader)
		for _, none := range []*elect.Term{nil, {}} {
			w.wantError(none.Resign(w.Context()), asynclock.ErrInvalidOption)
			w.wantError(none.Proclaim(w.Context(), nil), asynclock.ErrInvalidOption)
		}
		w.wantError(new(elect.Elector).IsLeader(nil), asynclock.ErrInvalidOption)              //nolint:staticcheck // that is the point
		w.wantError(new(elect.Elector).Lead(nil, new(elect.Term)), asynclock.ErrInvalidOption) //nolint:staticcheck // likewise
		w.wantError(new(elect.Elector).Lead(w.Context(), nil), asynclock.ErrInvalidOption)
	})
}

func TestRunEndsWithWhatNoRepetitionHelps(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		a, b := w.run(c), w.run(c)
		a.leads()
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		_ = c.Close(ctx)
		w.pass(time.Minute)
		w.wantError(b.over(), asynclock.ErrClosed)
		w.wantError(a.over())
	})
}

// A poor store has no notes, and maybe no tokens.
type poor struct {
	store.Store

	features store.Features
}

func (s poor) Features() store.Features { return s.features }

func (s poor) Open(id string, notify func(store.Event)) (store.Session, error) {
	inner, err := s.Store.Open(id, notify)
	return poorSession{inner, s.features}, err
}

type poorSession struct {
	store.Session

	features store.Features
}

func (s poorSession) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	replies := s.Session.Acquire(ctx, batch)
	for i := range replies {
		if !s.features.Tokens {
			replies[i].Grant = store.Grant{}
		}
	}
	return replies
}

func (s poorSession) Inspect(ctx context.Context, key string) (store.Info, error) {
	info, err := s.Session.Inspect(ctx, key)
	if !s.features.Tokens {
		info.Token = 0
	}
	return info, err
}

func TestAStoreWithoutNotesHasElectionsWithoutValues(t *testing.T) {
	story(t, func(w *world) {
		c := w.clientOf(poor{w.store, store.Features{Tokens: true, FIFO: true}})
		err := elect.Run(w.Context(), c, key, func(context.Context, *elect.Term) error { return nil }, elect.WithValue([]byte("a")))
		w.wantError(err, asynclock.ErrUnsupported)
		r := w.run(c)
		term := r.leads()
		w.wantLeader(c, term.Token(), "")
		w.wantError(term.Proclaim(w.Context(), []byte("a")), asynclock.ErrUnsupported)
		w.pass(time.Hour)
		r.leads()
	})
}

func TestAStoreWithoutTokensHasNoObservers(t *testing.T) {
	story(t, func(w *world) {
		c := w.clientOf(poor{w.store, store.Features{}})
		r := w.run(c)
		if term := r.leads(); term.Token() != 0 {
			w.Errorf("number of the term: got %d, want 0", term.Token())
		}
		_, err := elect.Current(w.Context(), c, key)
		w.wantError(err, asynclock.ErrUnsupported)
		_, err = elect.Observe(w.Context(), c, key)
		w.wantError(err, asynclock.ErrUnsupported)
	})
}
