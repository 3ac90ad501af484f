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

// TestVerdicts: each verdict that is not OK, on what causes it.
func TestVerdicts(t *testing.T) {
	unreachable := fmt.Errorf("%w: connection refused", store.ErrUnreachable)
	foreign := fmt.Errorf("%w: a list", store.ErrForeignData)
	for name, c := range map[string]struct {
		cause  func(w *world)
		checks string
		want   string
	}{
		"nobody is there": {
			failing(asynclocktest.Inspect.Any, unreachable),
			"fail answers", "fail answers: A key can't be inspected: store unreachable: connection refused",
		},
		"inspect is denied": {
			failing(asynclocktest.Inspect.Any, errDenied),
			"fail answers, ok lock, ok messages, ok locks", "fail answers: A key can't be inspected: denied by the store: no permission",
		},
		"the server is slow": {
			func(w *world) {
				w.bad.Every(asynclocktest.Inspect.Any, asynclocktest.Slow(600*time.Millisecond, 600*time.Millisecond))
			},
			"warn answers, ok lock, ok messages, ok locks", "warn answers: Answers within 1.2s (p50) and 1.2s (p99 of 1 request): renewals may come late",
		},
		"the server falls silent": {
			func(w *world) {
				n := 0
				w.bad.Every(func(c asynclocktest.Call) bool { n++; return c.Op == asynclocktest.Inspect && n > 14 }, asynclocktest.Hang)
			},
			"warn answers, ok lock, ok messages, ok locks", "warn answers: Answers within 0s (p50) and 2.8s (p99 of 5 requests): renewals may come late",
		},
		"a store that gives up a moment before the end": {
			func(w *world) {
				n := 0
				w.bad.Every(func(c asynclocktest.Call) bool { n++; return c.Op == asynclocktest.Inspect && n > 14 }, func(context.Context, func()) error {
					time.Sleep(2750 * time.Millisecond)
					return store.ErrUnreachable
				})
			},
			"warn answers, ok lock, ok messages, ok locks", "warn answers: Answers within 0s (p50) and 2.8s (p99 of 5 requests): renewals may come late",
		},
		"the server is slow for a moment": {
			func(w *world) {
				w.later(600*time.Millisecond, func(store.Session) {
					w.bad.Next(asynclocktest.Inspect.Any, asynclocktest.Slow(120*time.Millisecond, 0))
				})
			},
			"note answers, ok lock, ok messages, ok locks", "note answers: Answers within 0s (p50) and 120ms (p99 of 20 requests): the server or the network is slow for moments",
		},
		"the server was silent": {
			func(w *world) { w.bad.Next(asynclocktest.Inspect.Any, asynclocktest.Slow(2*time.Second, 0)) },
			"warn answers, ok lock, ok messages, ok locks", "warn answers: Answers within 0s (p50) and 0s (p99 of 20 requests), but one request took 2s just before",
		},
		"the server goes away": {
			func(w *world) {
				w.bad.Next(asynclocktest.Inspect.Any, make([]asynclocktest.Fault, 25)...)
				w.bad.Every(asynclocktest.Inspect.Any, asynclocktest.Refuse)
			},
			"warn answers", "warn answers: Answers within 0s (p50) and 0s (p99 of 15 requests), and then failed: store unreachable",
		},

		"grace": {
			failing(asynclocktest.Acquire.Any, &store.GraceError{Remaining: 12 * time.Second}),
			"ok answers, warn lock, note messages, ok locks", "warn lock: The server was started or promoted lately, and grants nothing for 12s yet, because",
		},
		"grace of unknown length": {
			failing(asynclocktest.Acquire.Any, store.ErrGrace),
			"ok answers, warn lock, note messages, ok locks", "warn lock: The server was started or promoted lately, and grants nothing yet, because",
		},
		"to take is denied": {
			failing(asynclocktest.Acquire.Any, errDenied),
			"ok answers, fail lock, note messages, ok locks", "fail lock: A key can't be taken: denied by the store: no permission to run 'evalsha'",
		},
		"foreign data under a scratch key": {
			failing(asynclocktest.Acquire.Any, foreign),
			"ok answers, fail lock, note messages, ok locks", "fail lock: A key can't be taken: foreign data under the key: a list",
		},
		"a scratch key is held": {
			func(w *world) {
				w.clinic.acquired = func(store.AcquireRequest, store.AcquireReply) store.AcquireReply {
					return store.AcquireReply{Status: store.Held}
				}
			},
			"ok answers, fail lock, note messages, ok locks", "fail lock: A key that nobody else knows is refused",
		},
		"a scratch key is lost": {
			failing(asynclocktest.Renew.Any, store.ErrStolen),
			"ok answers, fail lock, note messages, ok locks", "fail lock: A key can be taken and not renewed: lease lost",
		},
		"a TTL that the store refuses": {
			failing(asynclocktest.Acquire.Any, fmt.Errorf("%w: the TTL of 15s is less than the session timeout", store.ErrInvalidOption)),
			"ok answers, fail lock, note messages, ok locks", "fail lock: A key can't be taken: invalid option: the TTL of 15s is less",
		},
		"a TTL that the store shortens": {
			func(w *world) {
				w.clinic.acquired = func(_ store.AcquireRequest, r store.AcquireReply) store.AcquireReply {
					r.TTL = 9 * time.Second
					return r
				}
			},
			"ok answers, note lock, ok messages, ok locks", "note lock: A key is taken in 0s, renewed in 0s and given back in 0s, but the store makes its TTL of 15s one of 9s.",
		},
		"to give back is denied": {
			func(w *world) { w.bad.Next(asynclocktest.Release.Any, asynclocktest.Fail(errDenied)) },
			"ok answers, fail lock, note messages, ok locks", "fail lock: A key can be taken and not given back: denied",
		},
		"a reply is lost": {
			func(w *world) { w.bad.Next(asynclocktest.Acquire.Any, asynclocktest.LoseReply) },
			"ok answers, fail lock", "fail lock: A key can't be taken: outcome unknown",
		},

		"messages are lost": {
			func(w *world) { w.bad.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop) },
			"ok answers, ok lock, warn messages, ok locks", "warn messages: The store was to tell a waiter of a release, and no message came within 2s",
		},
		"a subscription that does not come": {
			func(w *world) { w.clinic.acquired = deaf; w.bad.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop) },
			"ok answers, ok lock, warn messages, ok locks", "warn messages: Messages don't reach this client, so waiters poll",
		},
		"a store without messages": {
			func(w *world) {
				w.clinic.acquired, w.clinic.features.Retention = deaf, false
				w.bad.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
			},
			"ok answers, ok lock, note messages, ok locks", "note messages: Waiters poll",
		},
		"a key that does not reach its waiter": {
			func(w *world) {
				w.bad.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Drop)
				w.clinic.acquired = func(q store.AcquireRequest, r store.AcquireReply) store.AcquireReply {
					if q.Wait {
						r = store.AcquireReply{Status: store.Waiting}
					}
					return r
				}
			},
			"ok answers, ok lock, fail messages, ok locks", "fail messages: A key was given back, and its waiter did not get it",
		},
		"a second client is refused": {
			func(w *world) {
				w.clinic.opens = func(n int) error {
					if n == 1 {
						return errDenied
					}
					return nil
				}
			},
			"ok answers, ok lock, warn messages, ok locks", "warn messages: A second client can't be opened: denied",
		},
		"to wait is denied": {
			failing(asynclocktest.Acquire.From(1), errDenied),
			"ok answers, ok lock, warn messages, ok locks", "warn messages: A key could not be passed to a waiter: denied",
		},
		"a waiter is refused": {
			func(w *world) {
				w.clinic.acquired = func(q store.AcquireRequest, r store.AcquireReply) store.AcquireReply {
					if q.Wait {
						r.Status = store.Full
					}
					return r
				}
			},
			"ok answers, ok lock, warn messages, ok locks", "warn messages: A key could not be passed to a waiter: a scratch key was refused",
		},
		"the second key is refused": {
			func(w *world) {
				n := 0
				w.clinic.acquired = func(_ store.AcquireRequest, r store.AcquireReply) store.AcquireReply {
					if n++; n == 2 {
						r.Status = store.Held
					}
					return r
				}
			},
			"ok answers, ok lock, warn messages, ok locks", "warn messages: A key could not be passed to a waiter: a scratch key was refused",
		},
		"the handoff is denied": {
			func(w *world) { w.bad.Next(asynclocktest.Release.Any, nil, asynclocktest.Fail(errDenied)) },
			"ok answers, ok lock, warn messages, ok locks", "warn messages: A key could not be passed to a waiter: denied",
		},
		"the second key has no answer": {
			func(w *world) { w.bad.Next(asynclocktest.Acquire.Any, nil, asynclocktest.Hang) },
			"ok answers, ok lock, warn messages", "warn messages: A key could not be passed to a waiter: the server did not answer in time",
		},

		"a long queue": {
			func(w *world) { w.clinic.listed = []listing{{info: store.Info{Key: "it's", Held: true, Waiters: 101}}} },
			"ok answers, ok lock, ok messages, note locks", `note locks: 1 key is held, and 1 is waited for; the longest queue is that of "it's", with 101`,
		},
		"to list is denied": {
			failing(asynclocktest.List.Any, errDenied),
			"ok answers, ok lock, ok messages, note locks", "note locks: The keys can't be listed: denied",
		},
		"to list is not possible": {
			failing(asynclocktest.List.Any, store.ErrUnsupported),
			"ok answers, ok lock, ok messages, note locks", "note locks: The keys can't be listed: not supported",
		},
		"the list breaks off": {
			func(w *world) {
				w.clinic.listed = []listing{{info: store.Info{Key: "a", Held: true}}, {err: unreachable}}
			},
			"ok answers, ok lock, ok messages, warn locks", "warn locks: The list of keys broke off after 1 key: store unreachable: connection refused",
		},
		"foreign data": {
			func(w *world) {
				for i := range 4 {
					w.clinic.listed = append(w.clinic.listed, listing{store.Info{Key: fmt.Sprintf("k\n%d", i)}, foreign})
				}
			},
			"ok answers, ok lock, ok messages, ok locks, warn locks", `warn locks: 4 keys: "k\n0", "k\n1", "k\n2", …: what is stored there`,
		},
		"a lock without an end": {
			func(w *world) { w.clinic.listed = []listing{{info: store.Info{Key: "k", Held: true, Remaining: -1}}} },
			"ok answers, ok lock, ok messages, ok locks, warn locks", `warn locks: 1 key: "k": held without a TTL`,
		},
		"a server that does not count TTLs": {
			func(w *world) {
				w.clinic.listed, w.clinic.features.Sessions = []listing{{info: store.Info{Key: "k", Held: true, Remaining: -1}}}, true
			},
			allOK, "ok locks: 1 key is held",
		},
		"very many keys": {
			func(w *world) { w.clinic.listed = make([]listing, 10_001) },
			allOK, "ok locks: At least 0 keys are held",
		},
		"a list without an end": {
			func(w *world) { w.bad.Every(asynclocktest.List.Any, asynclocktest.Hang) },
			allOK, "ok locks: At least 0 keys are held",
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				c.cause(w)
				got := w.check()
				got.wantChecks(w.T, c.checks)
				got.want(w.T, c.want)
			})
		})
	}
}

// failing lets matching requests fail.
func failing(m asynclocktest.Match, err error) func(*world) {
	return func(w *world) { w.bad.Every(m, asynclocktest.Fail(err)) }
}

// deaf says that waiters have to poll.
func deaf(_ store.AcquireRequest, r store.AcquireReply) store.AcquireReply {
	if r.Status == store.Waiting {
		r.WillNotify, r.Recheck = false, time.Second
	}
	return r
}

// TestASlowServerIsFastEnoughForALongTTL: the verdict depends on the TTL.
func TestASlowServerIsFastEnoughForALongTTL(t *testing.T) {
	story(t, func(w *world) {
		w.bad.Every(asynclocktest.Inspect.Any, asynclocktest.Slow(20*time.Millisecond, 20*time.Millisecond))
		w.check().want(w.T, "ok answers: Answers within 40ms (p50) and 40ms (p99 of 20 requests)")
		w.check(doctor.WithTTL(500*time.Millisecond)).want(w.T, "warn answers: Answers within 40ms (p50) and 40ms (p99 of 20 requests): "+
			"renewals may come late, as that is more than a fifteenth of the TTL, 33.33ms")
	})
}

// TestAWaiterThatIsToldLate is OK, with the time that it took.
func TestAWaiterThatIsToldLate(t *testing.T) {
	story(t, func(w *world) {
		w.bad.EveryEvent(asynclocktest.AnyEvent, asynclocktest.Delay(1500*time.Millisecond))
		w.check().want(w.T, "ok messages: A waiter was told of a release after 1.5s")
	})
}

// TestASubscriptionThatTakesAWhile: only a waiter that will be told is judged.
func TestASubscriptionThatTakesAWhile(t *testing.T) {
	story(t, func(w *world) {
		began := time.Now()
		w.clinic.acquired = func(q store.AcquireRequest, r store.AcquireReply) store.AcquireReply {
			if time.Since(began) < time.Second {
				return deaf(q, r)
			}
			return r
		}
		w.check().wantChecks(w.T, allOK)
		if took := time.Since(began); took > 1200*time.Millisecond {
			w.Errorf("got %v, want that it goes on after a second", took)
		}
	})
}

// TestScratchKeysAreGivenBack, also if replies are lost and the context has ended.
func TestScratchKeysAreGivenBack(t *testing.T) {
	for name, spoil := range map[string]func(w *world, cancel func()){
		"a lost grant": func(w *world, _ func()) { w.bad.Next(asynclocktest.Acquire.Any, asynclocktest.LoseReply) },
		"a lost place": func(w *world, _ func()) { w.bad.Next(asynclocktest.Acquire.From(1), asynclocktest.LoseReply) },
		"the end of ctx": func(w *world, cancel func()) {
			w.bad.Next(asynclocktest.Acquire.From(1), func(ctx context.Context, carry func()) error {
				carry()
				cancel()
				return ctx.Err()
			})
		},
		"a late grant": func(w *world, _ func()) {
			w.bad.Next(asynclocktest.Acquire.Any, asynclocktest.Slow(3500*time.Millisecond, 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				ctx, cancel := context.WithCancel(w.Context())
				defer cancel()
				spoil(w, cancel)
				// Its own checks take so long that late requests come before the session is closed.
				st := checked{w.clinic, func(ctx context.Context, _ func(doctor.Finding)) { <-ctx.Done() }}
				if _, err := doctor.Check(ctx, st); err != nil && !errors.Is(err, context.Canceled) {
					w.Fatal(err)
				}
			})
		})
	}
}

// TestScratchKeysHaveNoLongTTL, because Redis grants nothing in a bucket for the longest TTL after a failover, and in one
// that is new.
func TestScratchKeysHaveNoLongTTL(t *testing.T) {
	story(t, func(w *world) {
		w.check(doctor.WithTTL(time.Hour)).wantChecks(w.T, allOK)
		if _, err := doctor.Why(w.Context(), w.clinic, "k", doctor.WithTTL(time.Hour)); err != nil {
			w.Fatal(err)
		}
		for _, c := range w.bad.Calls(asynclocktest.Any) {
			if ttl := max(c.Acquire.TTL, c.Acquire.GrantTTL, c.Renew.TTL); ttl > store.DefaultTTL {
				w.Errorf("got a TTL of %v in %+v, want %v at most", ttl, c, store.DefaultTTL)
			}
		}
	})
}

// TestAStoreThatRefusesShortTTLs: the clients use a longer one, as they have to with ZooKeeper.
func TestAStoreThatRefusesShortTTLs(t *testing.T) {
	story(t, func(w *world) {
		w.clinic.features.Sessions = true
		w.bad.Every(func(c asynclocktest.Call) bool {
			return c.Op == asynclocktest.Acquire && c.Acquire.TTL < 30*time.Second
		}, asynclocktest.Fail(store.ErrInvalidOption))
		w.check(doctor.WithTTL(time.Minute)).wantChecks(w.T, allOK)
		w.check(doctor.WithTTL(29*time.Second)).wantChecks(w.T, "ok answers, fail lock, note messages, ok locks")
	})
}

// TestOnlyScratchKeysAreTouched, and no key is taken by force.
func TestOnlyScratchKeysAreTouched(t *testing.T) {
	story(t, func(w *world) {
		w.hold("k", "a", "b")
		w.check()
		w.why("k")
		for _, c := range w.bad.Calls(asynclocktest.Any) {
			reads := c.Op == asynclocktest.Inspect || c.Op == asynclocktest.List || c.Op == asynclocktest.Close
			if !reads && (!strings.HasPrefix(c.Key, doctor.ScratchPrefix) || c.Op == asynclocktest.Force) {
				w.Errorf("got request %v of %q, want none", c.Op, c.Key)
			}
		}
	})
}
