// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/doctor"
	"github.com/asynclock/asynclock-go/store"
)

func TestWhy(t *testing.T) {
	foreign := fmt.Errorf("%w: a list", store.ErrForeignData)
	for name, c := range map[string]struct {
		cause  func(w *world)
		checks string
		want   []string
	}{
		"free": {
			func(*world) {}, "ok key", []string{"ok key: Nobody holds it, and nobody waits for it"},
		},
		"held and not waited for": {
			func(w *world) { w.hold("k", "a\n") },
			"ok holder, note renewals",
			[]string{`ok holder: Held by "a\n", token 1, 1m0s of its TTL left`},
		},
		"a holder that does not renew": {
			func(w *world) { w.hold("k", "a", "b", "c"); time.Sleep(10 * time.Second) },
			"note holder, note renewals, note queue",
			[]string{
				`note holder: Held by "a", token 1, 50s of its TTL left`,
				"note renewals: No renewal within 9s yet, which proves nothing; if the holder is dead, the key is free in 41s",
				`note queue: 2 wait; the first is "b", for 19s`,
			},
		},
		"a holder whose renewal is due": {
			func(w *world) { w.hold("k", "a"); time.Sleep(48 * time.Second) },
			"ok holder, note renewals",
			[]string{"note renewals: No renewal within 7s, although one was due: the holder stands still, is dead or cut off, or does not renew; the key is free in 5s"},
		},
		"a holder whose renewal is due, while another one waits": {
			func(w *world) { w.hold("k", "a", "b"); time.Sleep(48 * time.Second) },
			"note holder, warn renewals, note queue",
			[]string{"warn renewals: No renewal within 7s, although one was due"},
		},
		"a reply that comes late": {
			func(w *world) {
				w.hold("k", "a")
				w.bad.Next(asynclocktest.Inspect.Any, nil, nil, asynclocktest.Slow(0, 150*time.Millisecond))
			},
			"ok holder, note renewals",
			[]string{"note renewals: No renewal within 9"},
		},
		"a short lease that is given back": {
			func(w *world) {
				w.ask(store.AcquireRequest{Key: "k", Owner: "a", TTL: 300 * time.Millisecond}, store.Granted)
				w.later(240*time.Millisecond, release("a"))
			},
			"ok holder, note renewals",
			[]string{"note renewals: It got free within 250ms"},
		},
		"a holder that renews": {
			func(w *world) {
				w.hold("k", "a", "b")
				time.Sleep(10 * time.Second)
				w.later(1200*time.Millisecond, func(s store.Session) {
					s.Renew(w.Context(), []store.RenewRequest{{Key: "k", Owner: "a", TTL: time.Minute}})
				})
			},
			"note holder, note renewals, note queue",
			[]string{
				"note renewals: The holder is alive: it renewed the key within 1.3s", `note queue: 1 waits; the first is "b", for 11.3s`,
			},
		},
		"a holder that had just renewed": {
			func(w *world) {
				w.hold("k", "a")
				w.later(1200*time.Millisecond, func(s store.Session) {
					s.Renew(w.Context(), []store.RenewRequest{{Key: "k", Owner: "a", TTL: time.Minute}})
				})
			},
			"ok holder, note renewals",
			[]string{"note renewals: The holder is alive: it renewed the key within 1.3s"},
		},
		"a reader that renews": {
			func(w *world) {
				shared := store.Share{Mode: store.Shared}
				w.ask(store.AcquireRequest{Key: "k", Owner: "a", Share: shared}, store.Granted)
				w.later(1200*time.Millisecond, func(s store.Session) {
					s.Renew(w.Context(), []store.RenewRequest{{Key: "k", Owner: "a", TTL: time.Minute, Share: shared}})
				})
			},
			"ok holder, note renewals",
			[]string{"note renewals: A holder is alive: it renewed its share within 1.3s; others may be dead"},
		},
		"a key that changes hands": {
			func(w *world) {
				w.hold("k", "a", "b", "c")
				w.later(300*time.Millisecond, release("a"))
			},
			"note holder, note renewals, note queue",
			[]string{
				`note holder: Held by "a"`, "note renewals: It changed hands within 2s, from token 1 to 1048579, so the wait moves on",
				`note queue: 1 waits; the first is "c"`,
			},
		},
		"a key that changes hands again and again": {
			func(w *world) {
				w.hold("k", "a", "b", "c", "d")
				w.later(300*time.Millisecond, release("a"))
				w.later(800*time.Millisecond, release("b"))
			},
			"note holder, note renewals, note queue",
			[]string{"note renewals: It changed hands at least 2 times within 2s, so the wait moves on"},
		},
		"a TTL that is over": {
			func(w *world) { w.hold("k", "a"); time.Sleep(58500 * time.Millisecond) },
			"ok holder, warn renewals",
			[]string{"warn renewals: Its TTL was over within 1.5s: the holder stands still, is dead or cut off, or does not renew"},
		},
		"a key that is given back": {
			func(w *world) {
				w.hold("k", "a")
				w.later(300*time.Millisecond, release("a"))
			},
			"ok holder, note renewals",
			[]string{"note renewals: It got free within 500ms, so the wait moves on"},
		},
		"readers and a writer": {
			func(w *world) {
				for _, reader := range []string{"a", "b", "c", "d"} {
					w.ask(store.AcquireRequest{Key: "k", Owner: reader, Description: reader, Share: store.Share{Mode: store.Shared}}, store.Granted)
				}
				w.ask(store.AcquireRequest{Key: "k", Owner: "w", Description: "w", Wait: true}, store.Waiting)
			},
			"note holder, note renewals, note queue",
			[]string{
				`note holder: Readers hold it together: "a", "b", "c", …, token `, "note renewals: No renewal", `note queue: 1 waits; the first is "w"`,
			},
		},
		"readers that come and go": {
			func(w *world) {
				shared := store.Share{Mode: store.Shared}
				w.ask(store.AcquireRequest{Key: "k", Owner: "a", Share: shared}, store.Granted)
				w.later(time.Second/10, func(store.Session) { w.ask(store.AcquireRequest{Key: "k", Owner: "b", Share: shared}, store.Granted) })
			},
			"ok holder, note renewals",
			[]string{"note renewals: Its holders changed within 250ms; those that stay may be dead"},
		},
		"permits": {
			func(w *world) {
				take := func(owner string, weight int32, wait bool, want store.AcquireStatus) {
					share := store.Share{Mode: store.Permits, Weight: weight, Limit: 5}
					w.ask(store.AcquireRequest{Key: "k", Owner: owner, Description: owner, Share: share, Wait: wait}, want)
				}
				take("a", 3, false, store.Granted)
				take("b", 1, false, store.Granted)
				take("c", 2, true, store.Waiting)
			},
			"note holder, note renewals, note queue",
			[]string{
				`note holder: 4 of 5 permits are out: "a" (3), "b", token 2`,
				`note queue: 1 waits; the first is "c", for 9s, which requests more permits than the 1 that are free`,
			},
		},
		"nobody holds it in the grace": {
			func(w *world) {
				w.show(store.Info{Waiters: 1})
				w.clinic.grace = func() (time.Duration, bool, error) { return 12 * time.Second, true, nil }
			},
			"note key, note queue, warn grace",
			[]string{
				"note key: Nobody holds it although some wait", "note queue: 1 waits", "warn grace: The server was started or promoted lately, and grants nothing for 12s yet",
			},
		},
		"nobody holds it for a moment": {
			func(w *world) { w.show(store.Info{Waiters: 1}, store.Info{Held: true, Holder: "b"}) },
			"note key",
			[]string{`note key: Nobody held it, and "b" got it within 250ms, so the wait moves on`},
		},
		"nobody waits any more": {
			func(w *world) { w.show(store.Info{Waiters: 1}, store.Info{}) },
			"ok key",
			[]string{"ok key: Nobody holds it, and those who waited left within 250ms"},
		},
		"a grace that has not begun": {
			func(w *world) {
				w.clinic.grace = func() (time.Duration, bool, error) { return 15 * time.Second, false, nil }
			},
			"ok key, note grace",
			[]string{"note grace: The server was started or promoted lately, and nobody has requested a key of this part of it since: the first request waits for 15s"},
		},
		"it is denied to look for the grace": {
			func(w *world) { w.clinic.grace = func() (time.Duration, bool, error) { return 0, false, errDenied } },
			"ok key, note grace",
			[]string{"note grace: It is not known whether the server grants the key at present: denied by the store"},
		},
		"a lock without an end": {
			func(w *world) { w.show(store.Info{Held: true, Holder: "a", Remaining: -1}) },
			"ok holder, warn renewals",
			[]string{`ok holder: Held by "a"`, "warn renewals: It is held without a TTL"},
		},
		"a server that does not count TTLs": {
			func(w *world) {
				w.clinic.features.Sessions = true
				w.show(store.Info{Held: true, Holder: "a", Remaining: -1})
			},
			"ok holder, note renewals",
			[]string{"note renewals: The server counts no TTLs"},
		},
		"foreign data": {
			failing(asynclocktest.Inspect.Any, foreign),
			"fail key",
			[]string{"fail key: Nobody can lock it: foreign data under the key: a list"},
		},
		"nobody is there": {
			failing(asynclocktest.Inspect.Any, store.ErrUnreachable),
			"fail answers",
			[]string{"fail answers: The key can't be inspected: store unreachable"},
		},
		"the server is silent": {
			func(w *world) { w.bad.Every(asynclocktest.Any, asynclocktest.Hang) },
			"fail answers",
			[]string{"fail answers: The key can't be inspected: the server did not answer in time"},
		},
		"the server falls silent": {
			func(w *world) {
				w.hold("k", "a")
				w.bad.Next(asynclocktest.Inspect.Any, nil)
				w.bad.Every(asynclocktest.Inspect.Any, asynclocktest.Hang)
			},
			"fail answers",
			[]string{"fail answers: The key can't be inspected: the server did not answer in time"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				c.cause(w)
				began := time.Now()
				got := w.why("k")
				most := 10 * time.Second
				if c.checks == "fail answers" {
					most = 5 * time.Second
				}
				if took := time.Since(began); took > most {
					w.Errorf("got %v, want %v at most", took, most)
				}
				got.wantChecks(w.T, c.checks)
				got.want(w.T, c.want...)
			})
		})
	}
}

// later lets another client do something while the doctor looks.
func (w *world) later(d time.Duration, do func(store.Session)) {
	session := w.session()
	time.AfterFunc(d, func() { do(session) })
}

func release(owner string) func(store.Session) {
	return func(s store.Session) {
		s.Release(context.Background(), []store.ReleaseRequest{{Key: "k", Owner: owner}})
	}
}

// show lets Inspect show these, one after the other, and the last of them again and again.
func (w *world) show(infos ...store.Info) { w.clinic.shown = infos }

// TestHowToTakeAKey: the command in a fix can be copied.
func TestHowToTakeAKey(t *testing.T) {
	for key, want := range map[string]string{
		"orders/42": `asynclock unlock orders/42 --force --token 1`,
		"it's":      `asynclock unlock 'it'\''s' --force --token 1`,
		"$HOME":     `asynclock unlock '$HOME' --force --token 1`,
		"über":      `asynclock unlock 'über' --force --token 1`,
		"a\x1b[31m": `asynclock unlock "a\x1b[31m" --force --token 1`,
	} {
		t.Run(key, func(t *testing.T) {
			story(t, func(w *world) {
				w.hold(key, "a", "b")
				if got := w.why(key); !strings.HasSuffix(got[0].Fix, want) {
					w.Errorf("got %v, want %s", got, want)
				}
			})
		})
	}
}

// spelled is a store that spells all keys in one way.
type spelled struct{ store.Store }

func (s spelled) Open(id string, notify func(store.Event)) (store.Session, error) {
	session, err := s.Store.Open(id, notify)
	return spelledSession{session}, err
}

type spelledSession struct{ store.Session }

func (spelledSession) Spell(string) string { return "spelled" }

// TestAKeyThatTheStoreRefuses is the caller's mistake, not a finding.
func TestAKeyThatTheStoreRefuses(t *testing.T) {
	story(t, func(w *world) {
		w.bad.Every(asynclocktest.Inspect.Any, asynclocktest.Fail(store.ErrInvalidKey))
		if got, err := doctor.Why(w.Context(), w.clinic, "k"); !errors.Is(err, store.ErrInvalidKey) || len(got) != 0 {
			w.Errorf("got %v and %v, want %v", got, err, store.ErrInvalidKey)
		}
	})
}

func TestWhyOfAKeyAsTheStoreSpellsIt(t *testing.T) {
	story(t, func(w *world) {
		w.hold("spelled", "a")
		got, err := doctor.Why(w.Context(), spelled{w.memory}, "key")
		if err != nil {
			w.Fatal(err)
		}
		findings(got).want(w.T, `ok holder: Held by "a"`)
	})
}
