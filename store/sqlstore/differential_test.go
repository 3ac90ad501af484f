// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// TestAnswersAreThoseOfMemstore: to any sequence of requests for a key, in any modes. In both
// stores time passes by whole minutes only, and what ends does so half a minute after one. So it
// does not matter how long a request takes.
func TestAnswersAreThoseOfMemstore(t *testing.T) {
	t.Parallel()
	sqltest.OnEach(t, func(t *testing.T, d sqltest.Database) {
		st := newTables(t, d, WithoutNotifications())
		rapid.Check(t, func(draw *rapid.T) {
			steps := drawSteps(draw)
			key := uuid.NewString()
			var want transcript
			synctest.Test(t, func(t *testing.T) { want = play(t, memstore.New(), key, steps, time.Sleep) })
			got := play(t, st, key, steps, func(passes time.Duration) { letPass(t, d, st.settings.prefix, passes) })
			compare(draw, steps, got, want)
		})
	})
}

// letPass makes all that is in the tables older.
func letPass(t *testing.T, d sqltest.Database, prefix string, passes time.Duration) {
	t.Helper()
	span := map[string]string{"postgres": "INTERVAL '%d minutes'", "mysql": "INTERVAL %d MINUTE"}[d.Kind]
	span = fmt.Sprintf(span, passes/time.Minute)
	for _, set := range []string{
		"lock SET held_until = held_until - " + span, "share SET held_until = held_until - " + span,
		"waiter SET alive_until = alive_until - " + span + ", since = since - " + span,
	} {
		d.Run(t, "UPDATE "+prefix+set)
	}
}

// A step is one request, or a passing of time.
type step struct {
	acquire *store.AcquireRequest
	renew   *store.RenewRequest
	release *store.ReleaseRequest
	force   bool
	limit   *int32
	passes  time.Duration
	early   bool // of acquire: without the ticket that its owner has
}

func (s step) String() string {
	switch {
	case s.acquire != nil:
		return fmt.Sprintf("acquire %+v", *s.acquire)
	case s.renew != nil:
		return fmt.Sprintf("renew %+v", *s.renew)
	case s.release != nil && s.release.Rest != nil:
		return fmt.Sprintf("release %+v with a rest of %+v", *s.release, *s.release.Rest)
	case s.release != nil && s.release.Requeue != nil:
		return fmt.Sprintf("release %+v that requeues %+v", *s.release, *s.release.Requeue)
	case s.release != nil:
		return fmt.Sprintf("release %+v", *s.release)
	case s.force:
		return "force"
	case s.limit != nil:
		return fmt.Sprint("limit ", *s.limit)
	}
	return fmt.Sprintf("%v pass", s.passes)
}

// drawSteps draws a sequence of requests for one key.
func drawSteps(draw *rapid.T) (steps []step) {
	number := func(most int, name string) int { return rapid.IntRange(0, most).Draw(draw, name) }
	waiters, others := 5, 2 // who never wait
	owner := func() string { return string(rune('a' + number(waiters+others-1, "owner"))) }
	minutes := func() time.Duration { return time.Duration(number(4, "minutes"))*time.Minute + time.Minute/2 }
	style := number(3, "style") // of which the first three are of one mode each, except in a third of the draws
	share := func() store.Share {
		mode := style
		if mode == 3 || number(2, "another") == 0 {
			mode = number(2, "mode")
		}
		if store.Mode(mode) != store.Permits {
			return store.Share{Mode: store.Mode(mode)}
		}
		limit := int32(3 + number(1, "limit"))
		return store.Share{Mode: store.Permits, Weight: 1 + int32(number(2, "weight")), Limit: limit}
	}
	request := func() store.AcquireRequest {
		r := store.AcquireRequest{
			Owner: owner(), TTL: minutes(), GrantTTL: minutes(), WaiterTTL: minutes(),
			QueueLimit: 3 * number(1, "limited"), Share: share(),
		}
		r.Description, r.Wait = "owner "+r.Owner, r.Owner < string(rune('a'+waiters))
		if r.Share.Mode == store.Permits {
			r.Extra = int32(number(2, "extra"))
		}
		return r
	}
	for range 1 + number(24, "steps") {
		var s step
		switch number(13, "kind") {
		case 0, 1, 2, 3, 4:
			r := request()
			s.acquire, s.early = &r, number(3, "early") == 0
		case 5:
			s.renew = &store.RenewRequest{Owner: owner(), TTL: minutes(), Share: share()}
		case 6, 7, 8:
			s.release = &store.ReleaseRequest{Owner: owner(), HoldBack: time.Duration(number(1, "held back")) * minutes()}
		case 9:
			rest := share()
			s.release = &store.ReleaseRequest{Owner: owner(), Rest: &rest}
			if rest.Mode == store.Permits && number(1, "held back") == 0 {
				s.release.HoldBack = minutes()
			}
		case 10:
			r := request()
			s.release = &store.ReleaseRequest{Owner: owner(), Requeue: &r}
			if !r.Wait || r.Owner == s.release.Owner {
				continue
			}
		case 11:
			s.passes = time.Duration(1+number(2, "passes")) * time.Minute
		case 12:
			s.force = number(3, "force") == 0
		case 13:
			limit := int32(number(5, "stored limit"))
			s.limit = &limit
		}
		steps = append(steps, s)
	}
	return steps
}

// A transcript is the answer to each step, and what Inspect says after it.
type transcript []said

type said struct {
	acquire store.AcquireReply
	renew   store.RenewReply
	release store.ReleaseReply
	forced  bool
	info    store.Info
}

// play sends the requests to a store.
func play(t *testing.T, st store.Store, key string, steps []step, pass func(time.Duration)) (all transcript) {
	t.Helper()
	session, err := st.Open(uuid.NewString(), func(store.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(t.Context()) }() // it has nothing to say
	tickets, tokens := make(map[string]int64), make(map[string]int64)
	learn := func(r *store.AcquireRequest, reply store.AcquireReply) {
		tickets[r.Owner] = reply.Ticket
		if reply.Status == store.Granted {
			tokens[r.Owner] = reply.Token
		}
	}
	for _, s := range steps {
		var a said
		switch ctx := t.Context(); {
		case s.acquire != nil:
			r := *s.acquire
			r.Key = key
			if !s.early {
				r.Ticket = tickets[r.Owner]
			}
			a.acquire = session.Acquire(ctx, []store.AcquireRequest{r})[0]
			learn(&r, a.acquire)
		case s.renew != nil:
			r := *s.renew
			r.Key, r.Token = key, tokens[r.Owner]
			a.renew = session.Renew(ctx, []store.RenewRequest{r})[0]
		case s.release != nil:
			r := *s.release
			r.Key, r.Token = key, tokens[r.Owner]
			if r.Requeue != nil {
				requeue := *r.Requeue
				requeue.Key = key
				r.Requeue = &requeue
			}
			a.release = session.Release(ctx, []store.ReleaseRequest{r})[0]
			if a.release.Requeue != nil {
				learn(r.Requeue, *a.release.Requeue)
			}
		case s.force:
			a.forced, err = session.Force(ctx, key, 0)
		case s.limit != nil:
			err = session.(store.LimitSession).SetLimit(ctx, key, *s.limit)
		case s.passes > 0:
			pass(s.passes)
		}
		if err == nil {
			a.info, err = session.Inspect(t.Context(), key)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// compare ends the test where the answers differ, except in numbers, which have to come in the same
// order.
func compare(draw *rapid.T, steps []step, got, want transcript) {
	numbers := tokenPairs{make(map[int64]int64)}
	for i := range steps {
		g, w := got[i].words(), want[i].words()
		for j := range w {
			if g[j] != w[j] {
				draw.Fatalf("%s\ngot  %s\nwant %s", lines(steps[:i+1]), g[j], w[j])
			}
		}
		if why := numbers.add(got[i].tokens(), want[i].tokens()); why != "" {
			draw.Fatalf("%s\n%s\ngot  %+v\nwant %+v", lines(steps[:i+1]), why, got[i], want[i])
		}
	}
}

// lines says which steps there were.
func lines(steps []step) string {
	text := "after"
	for _, s := range steps {
		text += "\n\t" + s.String()
	}
	return text
}

// words are all that was said, without numbers.
func (a said) words() []string {
	words := []string{
		answer(a.acquire), fmt.Sprint(a.renew.Waiters, " ", kindOf(a.renew.Err)),
		fmt.Sprint(a.release.WasHeld && a.release.Err == nil, " ", kindOf(a.release.Cause), " ", kindOf(a.release.Err)), fmt.Sprint(a.forced),
	}
	if a.release.Requeue != nil {
		words = append(words, answer(*a.release.Requeue))
	}
	info := fmt.Sprint(a.info.Held, a.info.Holder, a.info.Mode, a.info.Used, a.info.Limit, " ", a.info.StoredLimit, " ", a.info.Waiters, halves(a.info.Remaining))
	if !a.info.Held {
		info = fmt.Sprint("free ", a.info.StoredLimit, " ", a.info.Waiters)
	}
	var holders []string // what is held back may come in any order
	for _, h := range a.info.Holders {
		holders = append(holders, fmt.Sprint(" [", h.Holder, " ", h.Weight, " ", halves(h.Remaining), "]"))
	}
	slices.Sort(holders)
	info += strings.Join(holders, "")
	for _, w := range a.info.Queue {
		info += fmt.Sprint(" ", w.Holder, " ", halves(w.Age))
	}
	return append(words, info)
}

// answer says what a reply says without numbers. Only who shares a key is named to waiters.
func answer(r store.AcquireReply) string {
	holder := ""
	if r.Status == store.Held {
		holder = r.Holder
	}
	return fmt.Sprint(r.Status, holder, " ", r.Limit, " ", max(halves(r.Remaining), 0), " ", r.Rank, r.Waiters, r.Weight, r.Fence > 0, " ", kindOf(r.Err))
}

// halves is a time in half minutes.
func halves(d time.Duration) int64 { return int64((d + time.Minute/4) / (time.Minute / 2)) }

// kindOf returns the sentinel that an error wraps.
func kindOf(err error) error {
	for _, kind := range []error{store.ErrExpired, store.ErrStolen, store.ErrInvalidOption, store.ErrUnsupported} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return err
}

// tokens are the numbers that are tokens. Those of Inspect are of who holds the key.
func (a said) tokens() (all []int64) {
	all = []int64{a.acquire.Token, a.acquire.Fence, a.release.Grant.Token, a.release.Grant.Fence}
	if a.acquire.Status == store.Held {
		all = append(all, a.acquire.HolderToken)
	}
	if a.release.Requeue != nil {
		all = append(all, a.release.Requeue.Token, a.release.Requeue.Fence)
	}
	if a.info.Held {
		all = append(all, a.info.Token)
	}
	var holders []int64
	for _, h := range a.info.Holders {
		holders = append(holders, h.Token)
	}
	slices.Sort(holders)
	return append(all, holders...)
}

// tokenPairs are the tokens of one store by those of the other.
type tokenPairs struct{ of map[int64]int64 }

// add adds pairs, and says why they can't be.
func (p tokenPairs) add(got, want []int64) string {
	for i, w := range want {
		g, known := p.of[w]
		switch {
		case (got[i] == 0) != (w == 0), known && g != got[i]:
			return fmt.Sprintf("token %d: got %d, want %d", i, got[i], g)
		case w == 0 || known:
			continue
		}
		others := make([]int64, 0, len(p.of))
		for other := range p.of {
			others = append(others, other)
		}
		if slices.ContainsFunc(others, func(other int64) bool { return (other < w) != (p.of[other] < got[i]) }) {
			return fmt.Sprintf("token %d: got %d, which is not in the order of memstore's %d", i, got[i], w)
		}
		p.of[w] = got[i]
	}
	return ""
}
