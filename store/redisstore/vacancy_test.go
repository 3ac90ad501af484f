// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// leaves takes the key and gives it back. It returns the token of the vacancy, which the session
// then knows.
func (c *client) leaves(key, owner string) int64 {
	c.T.Helper()
	token := c.Hold(key, owner).Token
	c.release(store.ReleaseRequest{Key: key, Owner: owner, Token: token})
	return token
}

// seesAgain makes the session's sightings of the servers of keys new ones, of one clock: that of the latest answer. A
// busy machine may take longer than a sighting is used, and answers that come late differ by how late they are.
func (c *client) seesAgain(keys ...string) {
	var clock int64 // now
	for _, key := range keys {
		if seen := c.session.store.sightings[bucketOf(key)].Load(); seen != nil {
			clock = max(clock, seen.clock+time.Since(seen.at).Microseconds())
		}
	}
	for _, key := range keys {
		place := &c.session.store.sightings[bucketOf(key)]
		if seen := place.Load(); seen != nil {
			place.Store(&sighting{history: seen.history, longest: seen.longest, clock: clock, at: time.Now()})
		}
	}
}

// A lateTake is a request that was made when the session had reason to, and may arrive long after.
type lateTake struct {
	call call
	in   []*taking
}

// take makes a request of take.lua.
func (c *client) takes(q store.AcquireRequest) *lateTake {
	c.T.Helper()
	c.seesAgain(q.Key)
	if !c.session.mayTake(&q) {
		c.T.Fatalf("request for %q: got none of take.lua, want one", q.Key)
	}
	late := new(lateTake)
	late.in = c.session.store.putTakes(&late.call, []*taking{{session: c.session, request: q, address: noAddress}})
	return late
}

// arrives sends the request to the server of a store. byTake says that take.lua has granted it. Otherwise acquire.lua
// answers.
func (l *lateTake) arrives(ctx context.Context, st *Store) (got store.AcquireReply, byTake bool) {
	q := l.in[0]
	st.taking.read(st.runOne(ctx, &l.call), l.in)
	if q.answered {
		return q.reply, q.reply.Err == nil
	}
	var c call
	must(c.acquire(st.settings.prefix, &q.request, noAddress, st.guard(q.request.Key)))
	return st.answer(ctx, &c), false
}

// answer runs a call of acquire.lua.
func (st *Store) answer(ctx context.Context, c *call) store.AcquireReply {
	r := newReply(st.runOne(ctx, c))
	got := r.acquireReply()
	if err := r.failed(st); err != nil {
		return store.AcquireReply{Err: err}
	}
	return got
}

// vacancyIn returns the token of the vacancy of a key, or 0 if it has none. While it has one there
// is nobody else to know of, and no counter.
func (sv *server) vacancyIn(t rapid.TB, key string) int64 {
	t.Helper()
	value, err := sv.Try("GET", sv.redisKey(key, 'l'))
	if err != nil {
		t.Fatal(err)
	}
	if !isVacancy(value) {
		return 0
	}
	others := []string{"EXISTS"}
	for _, kind := range lockKinds[1:] {
		others = append(others, sv.redisKey(key, byte(kind)))
	}
	if n, err := sv.Try(others...); n != "0" || err != nil {
		t.Fatalf("beside a vacancy: got %s, %v; want no other Redis key", n, err)
	}
	token, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// wantLeft checks what is in the place of the holder's record, and the number in the counter;
// empty: nothing.
func (sv *server) wantLeft(t *testing.T, key, lock, counter string) {
	t.Helper()
	if got := sv.Do(t, "GET", sv.redisKey(key, 'l')); got != lock {
		t.Errorf("record of %q: got %q, want %q", key, got, lock)
	}
	if got := sv.Do(t, "GET", sv.redisKey(key, 'f')); got != counter {
		t.Errorf("counter of %q: got %q, want %q", key, got, counter)
	}
}

func TestAKeyThatWasLeftIsTakenByALookAtIt(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		st := sv.store(t)
		c, other := join(t, st), join(t, st)
		left := c.leaves("key", "a")
		sv.wantLeft(t, "key", vacancyOf(left), "")
		if !c.session.vacancies.noted("key") || other.session.vacancies.noted("key") {
			t.Error("who knows of the vacancy: want the session that left it, and no other")
		}
		q := redistest.Request("key", "b")
		for i := range 3 {
			q.Owner, q.NotifyQueued = "b"+strconv.Itoa(i), true
			taker := []*client{c, c, other}[i] // a vacancy is anybody's
			got, byTake := taker.takes(q).arrives(t.Context(), st)
			if !byTake || got.Status != store.Granted || got.Token <= left || !got.TokensFollowClock || got.Waiters != 0 {
				t.Fatalf("got %+v, by take.lua %v; want a token above %d, from the clock, by take.lua", got, byTake, left)
			}
			want := fmt.Sprint(got.Token, " ", q.Owner, " ", noAddress, " ht ", q.Description)
			sv.wantLeft(t, "key", want, "")
			if ttl := sv.pttl(t, "key", 'l'); ttl <= grant || ttl > long {
				t.Errorf("TTL: got %v, want %v", ttl, long)
			}
			left = got.Token
			c.release(store.ReleaseRequest{Key: "key", Owner: q.Owner, Token: left})
			sv.wantLeft(t, "key", vacancyOf(left), "")
		}
		q.Ticket = left - 1
		if c.session.mayTake(&q) {
			t.Error("a request with a ticket is for take.lua, want that it isn't")
		}
	})
}

// The rest of what a session does with a vacancy, which the server's own account shows.
func TestOneLookAtAKeyThatWasLeft(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	c, rival := join(t, st), join(t, st)
	count := func(acquire func()) map[string]int {
		commands := []string{"evalsha", "get", "info", "set", "time", "exists", "zcard", "eval"}
		spent := make(map[string]int)
		for _, command := range commands {
			spent[command] = -sv.calls(t, command)
		}
		acquire()
		for _, command := range commands {
			spent[command] += sv.calls(t, command)
		}
		spent["info"] -= len(commands) // the test's own
		return spent
	}
	var left int64
	var got store.AcquireReply
	var spent map[string]int
	for try, tooOld := 0, true; tooOld; try++ { // what the session has seen counts for so long only
		c.leaves("key", fmt.Sprint("a", try))
		c.seesAgain("key")
		left = c.leaves("key", fmt.Sprint("b", try)) // so that the server knows the script
		owner := fmt.Sprint("c", try)
		c.seesAgain("key")
		seen := time.Now()
		spent = count(func() { got = c.Hold("key", owner) })
		tooOld = time.Since(seen) > sightingFor
		c.release(store.ReleaseRequest{Key: "key", Owner: owner, Token: got.Token})
	}
	if now := sv.clock(t); got.Token <= left || got.Token > now || !got.TokensFollowClock || got.WillNotify {
		t.Errorf("got %+v, want a token above %d and no later than %d, from the clock", got, left, now)
	}
	if want := "map[eval:0 evalsha:1 exists:0 get:2 info:1 set:1 time:0 zcard:0]"; fmt.Sprint(spent) != want {
		t.Errorf("commands for what was left: got %v, want %s", spent, want)
	}

	theirs := rival.leaves("key", "r1")
	c.seesAgain("key")
	spent = count(func() { got = c.Hold("key", "c") })
	if got.Token <= theirs || spent["evalsha"] != 1 || spent["eval"] != 0 {
		t.Errorf("after a rival: got %+v with %v, want a token above %d in one command", got, spent, theirs)
	}
	c.release(store.ReleaseRequest{Key: "key", Owner: "c", Token: got.Token})

	rival.Hold("key", "r2")
	for _, want := range []int{2, 1} { // the session learns that others want the key
		c.seesAgain("key")
		spent = count(func() { c.Wait("key", "d") })
		if spent["evalsha"] != want || spent["eval"] != 0 {
			t.Errorf("behind a rival: got %v, want commands: %d", spent, want)
		}
	}
}

// A session's memory need not be right.
func TestAWrongMemoryCostsAtMostACommand(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	for what, tt := range map[string]struct {
		spoil func(c *client, seen *sighting)
		most  int // commands
	}{
		"no vacancy":          {spoil: func(*client, *sighting) { sv.expire(t, "key") }, most: 2},
		"another key's place": {spoil: func(c *client, _ *sighting) { c.collides("key") }, most: 1},
		"another history":     {spoil: func(_ *client, seen *sighting) { seen.history = strings.Repeat("0", 40) }, most: 2},
		"a clock of long ago": {spoil: func(_ *client, seen *sighting) { seen.clock -= time.Hour.Microseconds() }, most: 2},
		"an old sighting":     {spoil: func(_ *client, seen *sighting) { seen.at = seen.at.Add(-sightingFor) }, most: 1},
		"a shorter longest":   {spoil: func(_ *client, seen *sighting) { seen.longest = long - 1 }, most: 1},
	} {
		sv.Do(t, "DEL", sv.redisKey("key", 'l'), sv.redisKey("key", 'f'))
		st := sv.store(t)
		c := join(t, st)
		left := c.leaves("key", "a")
		place := &st.sightings[bucketOf("key")]
		seen := *place.Load()
		tt.spoil(c, &seen)
		place.Store(&seen)
		before := sv.calls(t, "evalsha")
		got := c.Want(redistest.Request("key", "b"), store.Granted)
		if now := sv.clock(t); got.Token <= left || got.Token > now || !got.TokensFollowClock {
			t.Errorf("%s: got %+v, want a token above %d and no later than %d, from the clock", what, got, left, now)
		}
		if n := sv.calls(t, "evalsha") - before; n > tt.most {
			t.Errorf("%s: got %d commands, want %d at most", what, n, tt.most)
		}
		if place.Load() == &seen {
			t.Errorf("%s: got the wrong sighting kept, want that of the grant", what)
		}
	}
}

// collides notes a vacancy of another key, which has the place of this one.
func (c *client) collides(key string) {
	place := func(key string) uint64 { return maphash.String(vacanciesSeed, key) % vacanciesKept }
	for i := 0; ; i++ {
		if another := "another" + strconv.Itoa(i); place(another) == place(key) {
			c.session.vacancies.note(another)
			return
		}
	}
}

// The last token may be ahead of the clock, which was set back. Then take.lua is not asked for another one.
func TestTokensRiseAfterOnesAheadOfTheClock(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		st := sv.store(t)
		c, rival := join(t, st), join(t, st)
		token := c.Hold("key", "a").Token + time.Hour.Microseconds()
		c.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: token})
		sv.wantLeft(t, "key", vacancyOf(token), "")
		for i := range 3 {
			for name, who := range map[string]*client{"c": c, "r": rival} {
				who.session.vacancies.note("key")
				who.session.contended.note("key", false)
				who.seesAgain("key")
				next := who.leaves("key", name+strconv.Itoa(i))
				if next <= token {
					t.Errorf("token: got %d, want more than %d", next, token)
				}
				token = next
			}
		}
	})
}

// A TTL longer than any that the epoch knows is for the epoch to learn.
func TestALongerTTLIsNotForTheTake(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		c := join(t, sv.store(t))
		c.leaves("key", "a")
		q := redistest.Request("key", "b")
		q.TTL = time.Hour
		c.Want(q, store.Granted)
		if _, _, longest, _, _ := sv.epochOf(t, "key"); longest != millis(time.Hour) {
			t.Errorf("longest TTL of the epoch: got %d ms, want that of an hour", longest)
		}
	})
}

// A request may arrive long after its client has given up, and be based on what was true then. It names one Redis
// key if its client knew of a vacancy, and otherwise all that have to be absent.
func TestALateTakeFindsWhoIsThere(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		st := sv.store(t)
		c, rival := join(t, st), join(t, st)
		for what, tt := range map[string]struct {
			before   func(key string)
			want     store.AcquireStatus
			takes    bool // whether take.lua grants the key to who knew of the vacancy
			anyTakes bool // and to others
		}{
			"nothing":                {func(string) {}, store.Granted, true, true},
			"withdrawn":              {func(key string) { c.release(store.ReleaseRequest{Key: key, Owner: "late", Uncertain: true}) }, store.Withdrawn, false, false},
			"taken":                  {func(key string) { rival.Hold(key, "rival") }, store.Held, false, false},
			"taken and given back":   {func(key string) { rival.leaves(key, "rival") }, store.Granted, false, true}, // with a larger token
			"another one withdrawn":  {func(key string) { c.release(store.ReleaseRequest{Key: key, Owner: "another", Uncertain: true}) }, store.Granted, false, false},
			"kept back":              {func(key string) { sv.keepsBack(rival, key) }, store.Held, false, false},
			"taken and then expired": {func(key string) { rival.Hold(key, "rival"); sv.expire(t, key) }, store.Granted, false, true},
			"expired, with a waiter": {func(key string) { rival.Hold(key, "rival"); rival.Wait(key, "w"); sv.expire(t, key) }, store.Held, false, false},
			"only a counter":         {func(key string) { sv.expire(t, key); sv.Do(t, "SET", sv.redisKey(key, 'f'), "5") }, store.Granted, false, false},
			"foreign":                {func(key string) { sv.expire(t, key); sv.Do(t, "RPUSH", sv.redisKey(key, 'l'), "x") }, 0, false, false},
		} {
			for _, knows := range []bool{true, false} {
				key := fmt.Sprint(what, " ", knows)
				left := c.leaves(key, "a")
				if !knows {
					c.session.vacancies.forget(key)
				}
				late := c.takes(redistest.Attempt(key, "late"))
				if keys, want := len(late.in), map[bool]int{true: 2, false: 5}[knows]; late.call.keys != want || keys != 1 {
					t.Errorf("%s: Redis keys: got %d, want %d", key, late.call.keys, want)
				}
				tt.before(key)
				last := left
				if tt.want != 0 {
					last = max(left, rival.Inspect(key).Token)
				}
				got, byTake := late.arrives(t.Context(), st)
				if byTake != (knows && tt.takes || !knows && tt.anyTakes) || got.Status != tt.want || (got.Err == nil) != (tt.want != 0) {
					t.Errorf("%s: got %+v, by take.lua %v; want status %d", key, got, byTake, tt.want)
				}
				if got.Status == store.Granted && got.Token <= last {
					t.Errorf("%s: token: got %d, want more than %d", key, got.Token, last)
				}
				if tt.want == 0 {
					continue
				}
				if info := c.Inspect(key); info.Held != (tt.want != store.Withdrawn) {
					t.Errorf("%s: got %+v, want it held: %v", key, info, tt.want != store.Withdrawn)
				}
			}
		}
	})
}

// keepsBack gives a key back so that nobody has it for a while.
func (sv *server) keepsBack(c *client, key string) {
	token := c.Hold(key, "keeper").Token
	c.release(store.ReleaseRequest{Key: key, Owner: "keeper", Token: token, HoldBack: long})
}

// A waiter of the grace is the first when it ends. The server's id is the same again then.
func TestALateTakeAfterTheGrace(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		st := sv.store(t)
		c, waiter := join(t, st), join(t, st)
		left := c.leaves("key", "a")
		late := c.takes(redistest.Attempt("key", "late"))
		promote()
		if got := waiter.Acquire(redistest.Attempt("key", "b")); !errors.Is(got.Err, store.ErrGrace) {
			t.Errorf("Acquire in the grace: got %+v, want ErrGrace", got)
		}
		sv.wantLeft(t, "key", vacancyOf(left), "")
		ticket := waiter.Wait("key", "b").Ticket
		if ticket <= left {
			t.Errorf("ticket: got %d, want more than %d", ticket, left)
		}
		sv.wantLeft(t, "key", "", strconv.FormatInt(ticket, 10))
		sv.endGrace(t, "key")
		if got, byTake := late.arrives(t.Context(), st); byTake || got.Status != store.Held {
			t.Errorf("after the grace: got %+v, by take.lua %v; want Held", got, byTake)
		}
		waiter.Heard(store.EventGrant, "b")
	})
}

// The vacancy ends where somebody is remembered or held responsible. Then the counter has the
// last token, and no release leaves a vacancy before the withdrawn owner is forgotten.
func TestNoVacancyBesideAWithdrawnOwner(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		left := c.leaves("key", "a")
		if c.release(store.ReleaseRequest{Key: "key", Owner: "b", Uncertain: true}).WasHeld {
			t.Error("withdrawal: got WasHeld true, want false")
		}
		sv.wantLeft(t, "key", "", strconv.FormatInt(left, 10))
		for i, q := range []store.ReleaseRequest{
			{},                // by release_fast.lua, which writes the counter
			{Uncertain: true}, // by release.lua
			{HoldBack: long},  // by release.lua, and then it ends by its TTL
		} {
			q.Key, q.Owner = "key", "c"+strconv.Itoa(i)
			q.Token = c.Hold("key", q.Owner).Token
			if q.Token <= left {
				t.Errorf("token: got %d, want more than %d", q.Token, left)
			}
			left = q.Token
			c.release(q)
			if q.HoldBack > 0 {
				sv.expire(t, "key")
			}
			sv.wantLeft(t, "key", "", strconv.FormatInt(left, 10))
		}
		// A release that is not clean is made by release.lua.
		left = c.Hold("key", "unclean").Token
		c.releaseAgain(store.ReleaseRequest{Key: "key", Owner: "unclean", Token: left})
		sv.wantLeft(t, "key", "", strconv.FormatInt(left, 10))
		// The counter may have the record's token already.
		last := c.Hold("key", "d").Token
		sv.Do(t, "SET", sv.redisKey("key", 'f'), strconv.FormatInt(last, 10), "PX", "60000")
		c.release(store.ReleaseRequest{Key: "key", Owner: "d", Token: last})
		sv.wantLeft(t, "key", "", strconv.FormatInt(last, 10))
		sv.Do(t, "DEL", sv.redisKey("key", 'x'))
		last = c.leaves("key", "e")
		sv.wantLeft(t, "key", vacancyOf(last), "")
	})
}

// Whom force has deposed in the grace is remembered, too.
func TestForceInTheGraceLeavesNoVacancy(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		c.Hold("key", "a")
		promote()
		c.force("key")
		if last := sv.Do(t, "GET", sv.redisKey("key", 'f')); last == "" {
			t.Error("counter: got none, want one")
		}
		if n := sv.Number(t, "EXISTS", sv.redisKey("key", 'l')); n != 0 {
			t.Error("got a vacancy beside a withdrawn owner, want none")
		}
	})
}

// A vacancy has the largest token that is known, wherever it is known from.
func TestAVacancyHasTheLastToken(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		token := c.Hold("used", "a").Token + 5
		c.release(store.ReleaseRequest{Key: "used", Owner: "a", Token: token})
		sv.wantLeft(t, "used", vacancyOf(token), "")

		// The counter has a ticket from before the grant.
		token = c.Hold("used after a ticket", "a").Token
		sv.Do(t, "SET", sv.redisKey("used after a ticket", 'f'), strconv.FormatInt(token-1, 10), "PX", "60000")
		c.release(store.ReleaseRequest{Key: "used after a ticket", Owner: "a", Token: token + 5})
		sv.wantLeft(t, "used after a ticket", vacancyOf(token+5), "")

		// A token ahead of the clock is kept until the clock is past it, and for longer.
		for _, key := range []string{"used", "renewed"} {
			token = c.Hold(key, "b").Token + time.Hour.Microseconds()
			if key == "renewed" {
				if got := c.renew(store.RenewRequest{Key: key, Owner: "b", TTL: long, Token: token}); got.Err != nil {
					t.Fatal(got.Err)
				}
			}
			c.release(store.ReleaseRequest{Key: key, Owner: "b", Token: token})
			sv.wantLeft(t, key, vacancyOf(token), "")
			if ttl, want := sv.pttl(t, key, 'l'), DefaultCounterTTL+time.Hour; ttl <= want-time.Minute || ttl > want+time.Second {
				t.Errorf("TTL of a vacancy ahead of the clock, %s: got %v, want %v", key, ttl, want)
			}
		}

		ticket := sv.clock(t) + time.Hour.Microseconds()
		for what, change := range map[string]func(q *store.ReleaseRequest){
			"a ticket was larger":               func(*store.ReleaseRequest) {},
			"a ticket was larger, used before":  func(q *store.ReleaseRequest) { q.Token++ },
			"a ticket was larger, by the whole": func(q *store.ReleaseRequest) { q.HoldBack = 0; c.released[q.Key+" a"] = true },
		} {
			q := store.ReleaseRequest{Key: what, Owner: "a", Token: c.Hold(what, "a").Token}
			sv.Do(t, "SET", sv.redisKey(what, 'f'), strconv.FormatInt(ticket, 10), "PX", "60000")
			change(&q)
			c.release(q)
			sv.wantLeft(t, what, vacancyOf(ticket), "")
			if next := c.Hold(what, "b"); next.Token != ticket+1 || next.TokensFollowClock {
				t.Errorf("%s: next grant: got %+v, want token %d, not from the clock", what, next.Grant, ticket+1)
			}
		}
	})
}

// A slot that went to another node, was failed over there and came back has data of that node. Its
// epoch shows that.
func TestAVacancyCountsInTheHistoryOfTheEpoch(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, promote func()) {
		c := join(t, sv.store(t))
		c.leaves("key", "a")
		promote()
		if got := c.Acquire(redistest.Attempt("key", "b")); !errors.Is(got.Err, store.ErrUnreachable) {
			t.Errorf("got %+v, want ErrUnreachable", got)
		}
	})
}

// Without a guard, tokens tell two holders apart. So the server gives them, one after the other.
func TestWithoutAGuardNothingIsForTheTake(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t, WithoutFailoverGrace())
		c := join(t, st)
		c.leaves("key", "a")
		st.saw("key", &sighting{history: strings.Repeat("0", 40), longest: time.Hour, clock: 1, at: time.Now()})
		if q := redistest.Request("key", "b"); c.session.mayTake(&q) {
			t.Error("a request without a guard is for take.lua, want that it isn't")
		}
	})
}
