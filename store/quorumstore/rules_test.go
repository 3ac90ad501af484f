// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// Each rule of doc.go has a test here that fails when the rule is broken: see testdata/mutants.txt.

func TestQ1ALeaseLastsAsLongAsTheVoteInTheMiddle(t *testing.T) {
	act(t, func(s *scene) {
		reply := s.acquire(false, sceneTTL, time.Second, 2*time.Second)
		want(s, "status", reply.Status, store.Granted)
		want(s, "TTL", reply.TTL, 2*time.Second)
		time.Sleep(2*time.Second - time.Millisecond) // within the margin for clocks
		s.wantErr("renewal after the second vote", s.renew().Err, store.ErrExpired)
	})
}

func TestQ2AVoteThatHasEndedIsNotRenewed(t *testing.T) {
	act(t, func(s *scene) {
		s.acquire(false, sceneTTL, sceneTTL, time.Second)
		time.Sleep(2 * time.Second)
		s.wantErr("renewal", s.renew().Err, nil)
		want(s, "renewals of a live vote", len(got[store.RenewRequest](s.second)), 1)
		want(s, "renewals of a vote that has ended", len(got[store.RenewRequest](s.third)), 0)
		asked := got[store.AcquireRequest](s.third) // Q3: the lease is trusted
		want(s, "requests for the lost vote", len(asked), 2)
		want(s, "the same vote", asked[0].Owner == asked[len(asked)-1].Owner, false)
	})
}

func TestQ2ALateRenewalRevivesNothing(t *testing.T) {
	act(t, func(s *scene) {
		s.acquire(false, time.Second, time.Second, time.Second)
		time.Sleep(500 * time.Millisecond)
		for _, n := range s.nodes() {
			n.script(func(n *scripted) { n.slow = 600 * time.Millisecond })
		}
		s.wantErr("OK after the end", s.renew().Err, store.ErrExpired)
	})
}

func TestQ2ALateGrantRevivesNothing(t *testing.T) {
	act(t, func(s *scene) {
		s.acquire(false, sceneTTL, sceneTTL, time.Second)
		time.Sleep(500 * time.Millisecond)
		s.third.script(func(n *scripted) { n.slow, n.acquire.TTL = 600*time.Millisecond, 0 })
		want(s, "status", s.acquire(false).Status, store.Granted)
		time.Sleep(time.Second)
		s.third.script(func(n *scripted) { n.slow = 0 })
		s.wantErr("renewal", s.renew().Err, nil)
		want(s, "renewals of the vote that has ended", len(got[store.RenewRequest](s.third)), 0)
		want(s, "requests for a new one", len(got[store.AcquireRequest](s.third)), 3)
	})
}

func TestQ3ALeaseThatHasEndedTakesNoVoteAgain(t *testing.T) {
	act(t, func(s *scene) {
		s.acquire(false, sceneTTL, time.Second, time.Second)
		time.Sleep(2 * time.Second)
		s.wantErr("renewal", s.renew().Err, store.ErrExpired)
		for _, n := range s.nodes() {
			want(s, "requests to acquire", len(got[store.AcquireRequest](n)), 1)
		}
	})
}

// A vote was lost and is asked for while the lease is trusted, and is granted after its end.
func TestQ3AVoteThatComesAfterTheEndDoesNotCount(t *testing.T) {
	for _, noticed := range []bool{false, true} {
		t.Run(fmt.Sprint("noticed_", noticed), func(t *testing.T) {
			act(t, func(s *scene) {
				s.acquire(false, sceneTTL, 2*time.Second, time.Second)
				time.Sleep(1200 * time.Millisecond)
				s.second.script(func(n *scripted) { n.renew.Err = store.ErrOutcomeUnknown })
				s.third.script(func(n *scripted) { n.slow, n.acquire.TTL = 1500*time.Millisecond, 0 })
				s.wantErr("renewal on one node", s.renew().Err, store.ErrUnreachable)
				s.third.script(func(n *scripted) { n.slow = 0 })
				want(s, "requests for the lost vote", len(got[store.AcquireRequest](s.third)), 2)
				time.Sleep(time.Second)
				if noticed {
					s.wantErr("renewal after the end", s.renew().Err, store.ErrExpired)
				}
				time.Sleep(time.Second)
				last := got[store.ReleaseRequest](s.third)
				want(s, "the late vote is given back", last[len(last)-1].Owner, got[store.AcquireRequest](s.third)[1].Owner)
				s.wantErr("renewal after the late vote", s.renew().Err, store.ErrExpired)
			})
		})
	}
}

// A lease queues for a lost vote, and the node hands it over when the lease has ended.
func TestQ3AMessageToALeaseThatHasEndedTakesNoVote(t *testing.T) {
	act(t, func(s *scene) {
		s.acquire(false, 2*time.Second, 2*time.Second, time.Second)
		time.Sleep(1200 * time.Millisecond)
		for _, n := range []*scripted{s.door, s.second} {
			n.script(func(n *scripted) { n.renew.TTL = time.Second })
		}
		s.third.script(func(n *scripted) { n.acquire = store.AcquireReply{Status: store.Waiting, Ticket: 3} })
		s.wantErr("renewal", s.renew().Err, nil)
		time.Sleep(2 * time.Second)
		asked := got[store.AcquireRequest](s.third)
		want(s, "requests for the lost vote", len(asked), 2)
		s.third.notify(store.Event{Kind: store.EventGrant, Owner: asked[len(asked)-1].Owner})
		synctest.Wait()
		want(s, "requests after the end", len(got[store.AcquireRequest](s.third)), 2)
	})
}

func TestQ4AnIDThatWasGivenBackIsNotUsedAgain(t *testing.T) {
	act(t, func(s *scene) {
		s.door.script(func(n *scripted) { n.acquire = store.AcquireReply{Status: store.Waiting, Ticket: 3} })
		want(s, "status", s.acquire(true).Status, store.Waiting)
		s.door.script(func(n *scripted) { n.acquire = granted(7, 0) })
		want(s, "status", s.acquire(true).Status, store.Granted)
		for i, n := range s.nodes() {
			asked := got[store.AcquireRequest](n)
			want(s, "requests", len(asked), 2)
			want(s, fmt.Sprintf("node %d: the same id", i), asked[0].Owner == asked[len(asked)-1].Owner, n == s.door)
		}
	})
}

func TestQ5AReleaseWaitsForTheAnswerOfItsNode(t *testing.T) {
	for what, err := range map[string]error{"answered": nil, "failed": store.ErrOutcomeUnknown} {
		t.Run(what, func(t *testing.T) {
			act(t, func(s *scene) {
				s.third.script(func(n *scripted) { n.slow, n.acquire.Err = time.Second, err })
				want(s, "status", s.acquire(false).Status, store.Granted)
				s.third.script(func(n *scripted) { n.slow = 0 })
				want(s, "was held", s.release().WasHeld, true)
				want(s, "releases elsewhere", len(got[store.ReleaseRequest](s.second)), 1)
				want(s, "releases before the answer", len(got[store.ReleaseRequest](s.third)), 0)
				time.Sleep(2 * time.Second)
				r := got[store.ReleaseRequest](s.third)
				if len(r) != 1 || r[0].Uncertain != (err != nil) || r[0].Clean {
					t.Errorf("after the answer: got %+v, want one release, not clean, uncertain only if that failed", r)
				}
			})
		})
	}
}

func TestQ6AMessageOnlyMakesItsClaimAsk(t *testing.T) {
	act(t, func(s *scene) {
		for _, n := range []*scripted{s.second, s.third} {
			n.script(func(n *scripted) { n.acquire = store.AcquireReply{Status: store.Waiting, Ticket: 3} })
		}
		want(s, "status", s.acquire(true).Status, store.Waiting)
		s.second.notify(store.Event{
			Kind: store.EventGrant, Owner: got[store.AcquireRequest](s.second)[0].Owner, Grant: store.Grant{Token: 7}, GrantTTL: sceneTTL,
		})
		synctest.Wait()
		if wake := (store.Event{Kind: store.EventWake, Owner: "owner"}); len(s.events) != 1 || s.events[0] != wake {
			t.Errorf("events: got %+v, want one EventWake of the claim", s.events)
		}
		for _, n := range []*scripted{s.second, s.third} {
			n.script(func(n *scripted) { n.acquire = store.AcquireReply{Err: store.ErrOutcomeUnknown} })
		}
		if reply := s.acquire(true); reply.Status == store.Granted {
			t.Errorf("without an answer of the node: got %+v, want no lease", reply)
		}
		s.wantErr("renewal", s.renew().Err, store.ErrExpired)
	})
}

func TestQ7TheLargestTokenIsKnownToAMajority(t *testing.T) {
	act(t, func(s *scene) {
		s.tokens(false, 5, 9, 7)
		reply := s.acquire(false)
		written := slices.Concat(got[store.RenewRequest](s.door), got[store.RenewRequest](s.third))
		if reply.Status != store.Granted || reply.Token != 9 || reply.TokensFollowClock || len(written) == 0 || written[0].Token != 9 {
			t.Errorf("got %+v after the renewals %+v, want token 9, written before", reply, written)
		}
		s.renew()
		s.release()
		for _, n := range s.nodes() {
			renewals, releases := got[store.RenewRequest](n), got[store.ReleaseRequest](n)
			want(s, "token of a renewal", renewals[len(renewals)-1].Token, 9)
			want(s, "token of the release", releases[0].Token, 9)
		}
	})
}

func TestQ7ATokenThatNoMajorityKnowsMakesNoLease(t *testing.T) {
	act(t, func(s *scene) {
		s.tokens(false, 5, 9, 7)
		for _, n := range s.nodes() {
			n.script(func(n *scripted) { n.renew.Err = store.ErrOutcomeUnknown })
		}
		want(s, "status", s.acquire(false).Status, store.Held)
		for _, n := range s.nodes() {
			want(s, "released", n.released(), true)
		}
	})
}

func TestQ7TokensThatFollowTheClock(t *testing.T) {
	for what, c := range map[string]struct {
		apart           time.Duration
		written, follow bool
	}{
		"close":   {sceneTTL/20 - time.Millisecond, false, true},
		"apart":   {sceneTTL/20 + time.Millisecond, false, false},
		"farther": {sceneTTL/2 - time.Millisecond, false, false},
		"too_far": {sceneTTL/2 + time.Millisecond, true, false},
	} {
		t.Run(what, func(t *testing.T) {
			act(t, func(s *scene) {
				less := 1e12 - c.apart.Microseconds()
				s.tokens(true, 1e12, less, less)
				reply := s.acquire(false)
				want(s, "status", reply.Status, store.Granted)
				want(s, "token", reply.Token, 1e12)
				want(s, "tokens follow the clock", reply.TokensFollowClock, c.follow)
				want(s, "written", len(got[store.RenewRequest](s.second))+len(got[store.RenewRequest](s.third)) > 0, c.written)
			})
		})
	}
}

// A vote may come when the lease has its token, or be taken again. Then its node has a larger one.
func TestTheTokenThatIsShownIsTheLeases(t *testing.T) {
	act(t, func(s *scene) {
		s.tokens(true, 7, 8, 9)
		s.third.script(func(n *scripted) { n.slow = 100 * time.Millisecond })
		want(s, "token of the lease", s.acquire(false).Token, 8)
		s.third.script(func(n *scripted) { n.slow = 0 })
		for _, more := range []string{"a late vote", "a vote taken again"} {
			time.Sleep(2 * time.Second)
			want(s, more+" that does not show it is released", s.third.released(), true)
			info, err := s.session.Inspect(s.Context(), "key")
			s.wantErr(more, err, nil)
			want(s, more+": token shown", info.Token, 8)
			s.third.script(func(n *scripted) { n.slow, n.renew.Err, n.acquire.Token = 50*time.Millisecond, store.ErrExpired, 10 })
			s.wantErr("renewal, which does not wait for a loss", s.renew().Err, nil)
		}
		time.Sleep(2 * time.Second)
		want(s, "votes on the node", len(got[store.AcquireRequest](s.third)), 4)
		s.session.Renew(s.Context(), []store.RenewRequest{{Key: "key", Owner: "owner", TTL: sceneTTL, Token: 20}})
		time.Sleep(2 * time.Second)
		info, _ := s.session.Inspect(s.Context(), "key")
		want(s, "token shown, which the client has used", info.Token, 20)
	})
}

func TestQ8WhoDoesNotHaveTheDoorGivesBackTheRest(t *testing.T) {
	act(t, func(s *scene) {
		s.door.script(func(n *scripted) { n.acquire = store.AcquireReply{Status: store.Waiting, Ticket: 3} })
		want(s, "status", s.acquire(true).Status, store.Waiting)
		for _, n := range s.nodes() {
			want(s, "released", n.released(), n != s.door)
		}
	})
}

func TestQ8WhoCanHaveNoMajorityGivesBackAll(t *testing.T) {
	for what, c := range map[string]struct{ others, answer store.AcquireReply }{
		"unreachable": {store.AcquireReply{Err: store.ErrUnreachable}, store.AcquireReply{Err: store.ErrUnreachable}},
		"in_a_grace":  {store.AcquireReply{Status: store.Waiting, Grace: time.Second, Ticket: 1}, store.AcquireReply{Status: store.Waiting}},
	} {
		t.Run(what, func(t *testing.T) {
			act(t, func(s *scene) {
				for _, n := range []*scripted{s.second, s.third} {
					n.script(func(n *scripted) { n.acquire = c.others })
				}
				reply := s.acquire(true)
				want(s, "status", reply.Status, c.answer.Status)
				want(s, "grace", reply.Grace, c.others.Grace)
				s.wantErr("error", reply.Err, c.answer.Err)
				for _, n := range s.nodes() {
					want(s, "released", n.released(), true)
				}
			})
		})
	}
}

// A lease may have a majority without the door. A claim that waits behind it gives the door back, and keeps it behind two others.
func TestWhoIsBehindALeaseGivesTheDoorBack(t *testing.T) {
	for what, holders := range map[string][2]string{"one": {"a", "a"}, "two": {"a", "b"}} {
		t.Run(what, func(t *testing.T) {
			act(t, func(s *scene) {
				for _, owner := range holders {
					s.session.Acquire(s.Context(), []store.AcquireRequest{{Key: "elsewhere", Owner: owner, TTL: sceneTTL}})
				}
				shown := got[store.AcquireRequest](s.second) // how the holders describe themselves
				s.door.script(func(n *scripted) { n.requests = nil })
				for i, n := range []*scripted{s.second, s.third} {
					n.script(func(n *scripted) {
						n.acquire = store.AcquireReply{Status: store.Waiting, Ticket: 3, Holder: shown[i].Description}
						n.requests = nil
					})
				}
				want(s, "status", s.acquire(true).Status, store.Waiting)
				want(s, "the door is released", s.door.released(), holders[0] == holders[1])
			})
		})
	}
}
