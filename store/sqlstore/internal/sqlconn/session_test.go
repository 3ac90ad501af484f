// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// plainTables know nothing of their own.
type plainTables struct{}

func (plainTables) Item(key string) Item              { return Item{Key: KeyName(key)} }
func (plainTables) Owner(owner string) string         { return owner }
func (plainTables) Fence(key string) string           { return KeyName(key) }
func (plainTables) Holder(a Answer) string            { return a.Holder }
func (plainTables) Request(_ time.Time, i []Item) any { return i }
func (plainTables) Observe(_, _, _ time.Time)         {}

// answering returns a session of a store in whose database each routine answers as a test
// says, with items or an error.
func answering(answers func(routine string, items []Item) ([]Answer, error)) *Session {
	d := postgres
	d.call = func(_ context.Context, _ *sql.DB, r routineCall) (string, error) {
		var items []Item
		if err := json.Unmarshal([]byte(r.argument), &items); err != nil {
			return "", err
		}
		found, err := answers(r.routine, items)
		if err != nil {
			return "", err
		}
		out, err := json.Marshal(Reply{Clock: time.Now().UnixMicro(), Items: found})
		return string(out), err
	}
	return &Session{conn: &Conn{Config: Config{Tables: plainTables{}}, db: sql.OpenDB(new(cutDriver)), dialect: &d}}
}

// acquire asks for keys in one batch, and returns why each was not granted.
func acquire(ctx context.Context, s *Session, keys ...string) []error {
	var batch []store.AcquireRequest
	for _, key := range keys {
		batch = append(batch, store.AcquireRequest{Key: key, Owner: key, TTL: time.Minute})
	}
	return Do(ctx, s, Routine[store.AcquireRequest, error]{
		Name:   "ACQUIRE",
		Put:    s.AcquireItem,
		Read:   func(*store.AcquireRequest, Answer) (error, error) { return nil, nil },
		Failed: func(err error) error { return err },
	}, batch)
}

// TestRefusedRequestLeavesItsNeighboursAlone: what the server can't do for one of a batch.
func TestRefusedRequestLeavesItsNeighboursAlone(t *testing.T) {
	t.Parallel()
	asked := make(map[string]int)
	s := answering(func(_ string, items []Item) (found []Answer, err error) {
		for _, it := range items {
			asked[it.Key]++
		}
		if slices.ContainsFunc(items, func(it Item) bool { return it.Key == "bad" }) {
			return nil, coded("22021")
		}
		for range items {
			found = append(found, Answer{Status: StatusGranted, Token: 1})
		}
		return found, nil
	})
	got := acquire(t.Context(), s, "a", "bad", "c")
	if got[0] != nil || !errors.Is(got[1], errServer) || got[2] != nil {
		t.Errorf("Acquire beside one that the server refuses: got %v, want it granted, and that one an error", got)
	}
	if asked["bad"] != 2 {
		t.Errorf("the refused request was sent %d times, want 2", asked["bad"])
	}
}

// TestListGoesOnBehindKeysThatAreGone: a page of keys that were gone when the routine
// looked closer neither ends the listing nor begins it anew.
func TestListGoesOnBehindKeysThatAreGone(t *testing.T) {
	t.Parallel()
	const keys = 3 * listPage
	for _, c := range []struct {
		name string
		gone func(call, place int) bool // whether that one of a page is gone
		ends bool                       // with an error
	}{
		{"none", func(int, int) bool { return false }, false},
		{"the last of each page", func(_, place int) bool { return place == listPage-1 }, false},
		{"all of a page", func(call, _ int) bool { return call == 1 }, false},
		{"all", func(int, int) bool { return true }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			s := answering(func(_ string, items []Item) (page []Answer, err error) {
				if calls > 20 {
					t.Fatal("the listing goes on for ever")
				}
				from := 0
				if after := items[0].After; after != "" {
					if _, err := fmt.Sscanf(after, "key%d", &from); err != nil {
						t.Fatal(err)
					}
					from++
				}
				for i := from; i < keys && len(page) < items[0].Size; i++ {
					key := fmt.Sprintf("key%06d", i)
					if c.gone(calls, len(page)) {
						page = append(page, Answer{})
					} else {
						page = append(page, Answer{Key: key, Name: key, Held: true})
					}
				}
				calls++
				return page, nil
			})
			seen := make(map[string]bool)
			var failed error
			for info, err := range s.List(t.Context(), "") {
				if err != nil {
					failed = err
				} else {
					seen[info.Key] = true
				}
			}
			if (failed != nil) != c.ends {
				t.Errorf("List: got %v, want an error: %v", failed, c.ends)
			}
			if !c.ends && len(seen) != keys {
				t.Errorf("List: got %d keys, want %d", len(seen), keys)
			}
		})
	}
}

// A routine of an older release says only that nothing was held.
func TestAReleaseSaysWhyNothingWasHeld(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]error{
		`{"held": true}`:           nil,
		`{"s": 1, "held": true}`:   nil,
		`{"s": -2, "held": false}`: store.ErrExpired,
		`{"s": -3, "held": false}`: store.ErrStolen,
		`{"held": false}`:          store.ErrLost,
	} {
		var a Answer
		if err := json.Unmarshal([]byte(answer), &a); err != nil {
			t.Fatal(err)
		}
		if got := a.NotHeld(); got != want { //nolint:errorlint // exactly this
			t.Errorf("%s: got %v, want %v", answer, got, want)
		}
	}
}

// A row of Java's table may end in the year 5000, or never.
func TestTimesBeyondGosDoNotOverflow(t *testing.T) {
	t.Parallel()
	const years = 3000 * 365 * 24 * int64(time.Hour/time.Microsecond)
	a := Answer{Held: true, Left: years, Clock: 1}
	if got := a.Remaining(store.Share{}); got < 290*365*24*time.Hour {
		t.Errorf("Remaining: got %v, want some 292 years", got)
	}
	s := answering(func(string, []Item) ([]Answer, error) { return []Answer{a}, nil })
	if got, err := s.Inspect(t.Context(), "key"); err != nil || got.Remaining < 290*365*24*time.Hour {
		t.Errorf("Inspect: got %v, %v, want some 292 years", got.Remaining, err)
	}
}

func TestAnswersAboutNotesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	var s Session
	for _, a := range []Answer{{}, {Clock: -1}, {Clock: 1, NoteToken: -1}} {
		if n, err := s.NoteOf(a); !errors.Is(err, ErrReply) {
			t.Errorf("NoteOf(%+v): got %+v, %v; want ErrReply", a, n, err)
		}
	}
}
