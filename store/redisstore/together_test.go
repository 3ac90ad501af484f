// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// A barrier is a driver that notes which scripts it is to run, and runs them when it is open.
type barrier struct {
	redisdriver.Driver

	instead func(run redisdriver.Run) redisdriver.Result // nil: the server answers
	open    chan struct{}
	mu      sync.Mutex
	runs    map[*redisconn.Script][]int // how many Redis keys each run has
}

func (b *barrier) Eval(ctx context.Context, run redisdriver.Run) redisdriver.Result {
	b.mu.Lock()
	b.runs[run.Script] = append(b.runs[run.Script], len(run.Keys))
	b.mu.Unlock()
	select {
	case <-b.open:
	case <-ctx.Done():
		return redisdriver.ErrorResult(ctx.Err())
	}
	if b.instead != nil && (run.Script == takeScript || run.Script == leaveScript) {
		return b.instead(run)
	}
	return b.Driver.Eval(ctx, run)
}

// Failure is for errors that the test has made, too.
func (b *barrier) Failure(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return b.Driver.Failure(err)
}

func (b *barrier) count(script *redisconn.Script) []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.runs[script])
}

// behindBarrier opens a store whose scripts wait, and a session that has seen the server grant keys of the buckets.
func (sv *server) behindBarrier(t *testing.T, keys []string) (*client, *barrier) {
	t.Helper()
	sv.acquaint(t, long)
	conn, err := redisconn.Open(sv.Option)
	if err != nil {
		t.Fatal(err)
	}
	b := &barrier{Driver: rueidisDriver{conn}, open: make(chan struct{}), runs: make(map[*redisconn.Script][]int)}
	close(b.open)
	st, err := NewWith(b, WithPrefix(sv.prefix), WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	c := join(t, st)
	for i, key := range keys {
		c.leaves(key, fmt.Sprint("before", i))
		c.session.vacancies.forget(key)
	}
	return c, b
}

// closed makes the scripts wait from now on.
func (b *barrier) closed() (open func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.runs)
	b.open = make(chan struct{})
	return sync.OnceFunc(func() { close(b.open) })
}

// keysOf are n keys, all of one bucket if slots matter.
func keysOf(n int, option rueidis.ClientOption) (keys []string) {
	for i := 0; len(keys) < n; i++ {
		if key := fmt.Sprint("key", i); len(option.InitAddress) == 1 || bucketOf(key) == bucketOf("key0") {
			keys = append(keys, key)
		}
	}
	return keys
}

// crowded sends a request about each key at the same time, when so many of the others as go by themselves are under way.
func crowdedOn[Reply any](t *testing.T, b *barrier, keys []string, alone *redisconn.Script, request func(i int) Reply) []Reply {
	t.Helper()
	open := b.closed()
	defer open()
	replies := make([]Reply, len(keys))
	var all sync.WaitGroup
	for i := range keys {
		if i == byThemselves {
			kit.Eventually(t, "some are under way by themselves", func() bool { return len(b.count(alone)) == byThemselves })
		}
		all.Go(func() { replies[i] = request(i) })
	}
	kit.Eventually(t, "the others wait", func() bool { return len(b.count(takeScript))+len(b.count(leaveScript)) > 0 })
	open()
	all.Wait()
	return replies
}

// Requests of many callers go together: few scripts take most keys and give them back. A busy machine may take too long
// for a key.
func TestManyCallersShareAScript(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"ASYNCLOCK_REDIS_URL", "ASYNCLOCK_CLUSTER_URL"} {
		sv := onServer(t, redistest.Option(t, where))
		keys := keysOf(120, sv.Option)
		c, b := sv.behindBarrier(t, keys)
		c.seesAgain(keys...)
		tokens := crowdedOn(t, b, keys, acquireScript, func(i int) int64 {
			q := redistest.Request(keys[i], fmt.Sprint("o", i))
			q.NotifyQueued = i%2 == 0
			c.seesAgain(keys[i])
			return c.session.Acquire(t.Context(), []store.AcquireRequest{q})[0].Token
		})
		for i, token := range tokens {
			if info := c.Inspect(keys[i]); token == 0 || info.Token != token {
				t.Fatalf("%s: %q: got token %d and %+v, want it held with that token", where, keys[i], token, info)
			}
			flags := strings.Fields(sv.Do(t, "GET", sv.redisKey(keys[i], 'l')))[3]
			if want := map[bool]string{true: "ht", false: "t"}[i%2 == 0]; flags != want {
				t.Errorf("%s: flags of %q: got %s, want %s", where, keys[i], flags, want)
			}
		}
		if takes, lone := b.count(takeScript), b.count(acquireScript); len(takes) > 60 || len(lone) < byThemselves || len(lone) > 2*byThemselves {
			t.Errorf("%s: scripts for 120 keys: got %v together and %d by themselves, want fewer and %d to %d", where, takes, len(lone), byThemselves, 2*byThemselves)
		}
		held := crowdedOn(t, b, keys, releaseFastScript, func(i int) bool {
			q := store.ReleaseRequest{Key: keys[i], Owner: fmt.Sprint("o", i), Token: tokens[i], Clean: true}
			return c.session.Release(t.Context(), []store.ReleaseRequest{q})[0].WasHeld
		})
		for i, token := range tokens {
			if !held[i] {
				t.Errorf("%s: release of %q: got WasHeld false, want true", where, keys[i])
			}
			sv.wantLeft(t, keys[i], vacancyOf(token), "")
		}
		if leaves, lone := b.count(leaveScript), b.count(releaseFastScript); len(leaves) > 60 || len(lone) < byThemselves || len(lone) > 2*byThemselves {
			t.Errorf("%s: scripts for 120 keys: got %v together and %d by themselves, want fewer and %d to %d", where, leaves, len(lone), byThemselves, 2*byThemselves)
		}
	}
}

// One call for several keys is one script, and its answers are those of each key.
func TestABatchIsOneScript(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	c, rival := join(t, st), join(t, st)
	keys := keysOf(100, sv.Option)
	var acquires []store.AcquireRequest
	for i, key := range keys {
		c.leaves(key, "before") // which also sees the server
		acquires = append(acquires, redistest.Attempt(key, fmt.Sprint("o", i)))
	}
	c.seesAgain(keys...)
	for _, q := range acquires { // so that the server knows the scripts
		c.release(store.ReleaseRequest{Key: q.Key, Owner: "x", Token: c.Hold(q.Key, "x").Token})
	}
	rival.Hold(keys[7], "rival")
	sv.Do(t, "DEL", sv.redisKey(keys[8], 'l'))
	sv.Do(t, "RPUSH", sv.redisKey(keys[8], 'l'), "foreign")
	acquires = append(acquires, redistest.Attempt(keys[9], "again"))
	acquires[10].TTL = -1
	c.seesAgain(keys...)
	before := sv.calls(t, "evalsha")
	replies := c.session.Acquire(t.Context(), acquires)
	if n := sv.calls(t, "evalsha") - before; n != 2+3 {
		t.Errorf("scripts for 100 keys, of which three are not free: got %d, want 5", n)
	}
	var releases []store.ReleaseRequest
	for i, got := range replies {
		want, wantErr := store.Granted, error(nil)
		switch i {
		case 7, 100:
			want = store.Held
		case 8:
			want, wantErr = 0, store.ErrForeignData
		case 10:
			want, wantErr = 0, store.ErrInvalidOption
		}
		if got.Status != want || !errors.Is(got.Err, wantErr) {
			t.Errorf("%d, %q: got %+v, want status %d, error %v", i, acquires[i].Key, got, want, wantErr)
		}
		if got.Status == store.Granted {
			releases = append(releases, store.ReleaseRequest{Key: acquires[i].Key, Owner: acquires[i].Owner, Token: got.Token, Clean: true})
		}
	}
	rival.Wait(keys[3], "w")
	before = sv.calls(t, "evalsha")
	for i, got := range c.session.Release(t.Context(), releases) {
		if !got.WasHeld || got.Err != nil {
			t.Errorf("release %d of %q: got %+v, want that it was held", i, releases[i].Key, got)
		}
	}
	if n := sv.calls(t, "evalsha") - before; n < 3 || n > 5 { // the first has to be told to the server
		t.Errorf("scripts for 97 releases, one with a waiter: got %d, want 3", n)
	}
	rival.Heard(store.EventGrant, "w")
}

// Whatever becomes of a script, each caller gets an answer of its own.
func TestACallerIsAnsweredWhateverBecomesOfTheScript(t *testing.T) {
	t.Parallel()
	const refusal = "NOPERM this user has no permissions to run the 'set' command"
	for what, tt := range map[string]struct {
		instead func(redisdriver.Run) redisdriver.Result
		want    error // nil: each is granted the key by itself
	}{
		"the server refuses it": {func(redisdriver.Run) redisdriver.Result {
			return redisdriver.RefusalResult(refusal, errors.New(refusal))
		}, nil},
		"of several slots": {func(redisdriver.Run) redisdriver.Result {
			return redisdriver.RefusalResult("CROSSSLOT Keys", errors.New("CROSSSLOT Keys"))
		}, nil},
		"the server is another":       {func(redisdriver.Run) redisdriver.Result { return redisdriver.ValueResult(int64(0)) }, nil},
		"it was canceled":             {func(redisdriver.Run) redisdriver.Result { return redisdriver.ErrorResult(context.Canceled) }, store.ErrOutcomeUnknown},
		"no answer":                   {func(redisdriver.Run) redisdriver.Result { return redisdriver.ErrorResult(context.DeadlineExceeded) }, store.ErrOutcomeUnknown},
		"an answer of something else": {func(redisdriver.Run) redisdriver.Result { return redisdriver.ValueResult("what?") }, store.ErrOutcomeUnknown},
		"a number of no request": {func(redisdriver.Run) redisdriver.Result {
			return redisdriver.ValueResult([]any{int64(5), int64(1 << 40)})
		}, errReply},
		"the driver panics": {func(redisdriver.Run) redisdriver.Result { panic("driver") }, store.ErrOutcomeUnknown},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL"))
			keys := keysOf(24, sv.Option)
			c, b := sv.behindBarrier(t, keys)
			c.seesAgain(keys...)
			b.instead = tt.instead
			replies := crowdedOn(t, b, keys, acquireScript, func(i int) store.AcquireReply {
				c.seesAgain(keys[i])
				return c.session.Acquire(t.Context(), []store.AcquireRequest{redistest.Request(keys[i], fmt.Sprint("o", i))})[0]
			})
			var failed int
			for i, got := range replies {
				switch {
				case got.Err == nil && got.Status == store.Granted && got.Token > 0:
				case tt.want != nil && errors.Is(got.Err, tt.want):
					failed++
				default:
					t.Errorf("%q: got %+v, want %v", keys[i], got, tt.want)
				}
			}
			if (failed > 0) != (tt.want != nil) {
				t.Errorf("got %d errors, want some: %v", failed, tt.want != nil)
			}
			if got := c.session.store.slotted.Load(); got != strings.Contains(what, "slots") {
				t.Errorf("keys are divided by slots: got %v", got)
			}
		})
	}
}

// A caller whose context ends goes, and the others stay. So it is when the store is closed.
func TestACallerNeedNotWaitForTheOthers(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL"))
	keys := keysOf(byThemselves+8, sv.Option)
	c, b := sv.behindBarrier(t, keys)
	open := b.closed()
	defer open()
	impatient, cancel := context.WithCancel(t.Context())
	patient, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	replies := make([]store.AcquireReply, len(keys))
	var all, gone sync.WaitGroup
	for i, key := range keys {
		ctx, who := patient, &all
		if i > byThemselves+3 {
			ctx, who = impatient, &gone
		}
		who.Go(func() {
			c.seesAgain(key)
			replies[i] = c.session.Acquire(ctx, []store.AcquireRequest{redistest.Request(key, fmt.Sprint("o", i))})[0]
		})
		if i == byThemselves-1 {
			kit.Eventually(t, "some are under way by themselves", func() bool { return len(b.count(acquireScript)) == byThemselves })
		}
	}
	kit.Eventually(t, "the others go together", func() bool { return len(b.count(takeScript)) > 0 })
	cancel()
	gone.Wait()
	for i, got := range replies[byThemselves+4:] {
		if !errors.Is(got.Err, context.Canceled) {
			t.Errorf("impatient %d: got %+v, want context.Canceled", i, got)
		}
	}
	open()
	all.Wait()
	for i, got := range replies[:byThemselves+4] {
		if got.Status != store.Granted {
			t.Errorf("patient %d: got %+v, want it granted", i, got)
		}
	}
	open = b.closed()
	for i := range keys {
		all.Go(func() {
			replies[i] = c.session.Acquire(patient, []store.AcquireRequest{redistest.Request(fmt.Sprint("other", i), "x")})[0]
		})
	}
	kit.Eventually(t, "all are under way", func() bool { return len(b.count(acquireScript)) >= byThemselves })
	c.session.store.Close()
	open()
	all.Wait()
	for i, got := range replies {
		if got.Err == nil && got.Status != store.Granted {
			t.Errorf("%d after Close: got %+v, want it granted or an error", i, got)
		}
	}
	if got := c.session.Acquire(patient, []store.AcquireRequest{redistest.Request("late", "x")})[0]; !errors.Is(got.Err, store.ErrClosed) {
		t.Errorf("after Close: got %+v, want ErrClosed", got)
	}
}

// A request whose caller has left before it was sent is not sent.
func TestARequestIsNotSentForACallerThatHasLeft(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_REDIS_URL"))
	c, b := sv.behindBarrier(t, []string{"gone", "here"})
	var all []*taking
	for _, key := range []string{"gone", "here"} {
		q := redistest.Request(key, "o")
		c.seesAgain(key)
		all = append(all, c.session.store.taking.request(c.session, &q, noAddress))
	}
	all[0].state.Store(joinedIsLeft)
	here := all[1]
	c.session.store.taking.send(0, all)
	if reply, answered := c.session.store.taking.result(here); !answered || reply.Status != store.Granted {
		t.Errorf("who stays: got %+v, %v; want it granted", reply, answered)
	}
	if takes := b.count(takeScript); c.Inspect("gone").Held || len(takes) != 1 {
		t.Errorf("who has left: got %+v after %v, want nothing", c.Inspect("gone"), takes)
	}
}

// A server that has lost its data may have its history still. Its grace is that of each bucket.
func TestNothingAbsentIsTakenInTheGraceOfItsBucket(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		for _, lost := range []string{"the epoch begins a grace", "there is no epoch"} {
			st := sv.store(t)
			a, b, c := join(t, st), join(t, st), join(t, st)
			other := lost + " elsewhere" // in a bucket that has lost nothing
			var keys []string
			for i := 0; len(keys) < 3; i++ {
				if key := fmt.Sprint(lost, i); bucketOf(key) != bucketOf(other) && (len(keys) == 0 || bucketOf(key) == bucketOf(keys[0])) {
					keys = append(keys, key)
				}
			}
			mine := a.Hold(keys[0], "one").Token
			c.Hold(keys[1], "two")
			b.leaves(keys[2], "x")
			b.leaves(other, "x")
			for _, key := range keys {
				sv.expire(t, key)
			}
			sv.Do(t, "DEL", sv.epoch(bucketOf(keys[0])))
			if lost == "the epoch begins a grace" {
				a.renew(store.RenewRequest{Key: keys[0], Owner: "one", TTL: long, Token: mine})
			}
			for _, batch := range [][]string{{other, keys[1]}, {keys[1], other}} {
				var acquires []store.AcquireRequest
				for _, key := range batch {
					b.seesAgain(key)
					b.session.vacancies.forget(key)
					b.session.contended.note(key, false)
					acquires = append(acquires, redistest.Attempt(key, "n"))
				}
				late := new(lateTake)
				for _, q := range acquires {
					late.in = append(late.in, &taking{session: b.session, request: q, address: noAddress})
				}
				in := st.putTakes(&late.call, late.in)
				st.taking.read(st.runOne(t.Context(), &late.call), in)
				for _, j := range in {
					if j.answered && j.request.Key == keys[1] {
						t.Errorf("%s, %q: got %+v beside a lease that is trusted, want it left alone", lost, batch, j.reply)
					}
				}
				b.session.Release(t.Context(), []store.ReleaseRequest{{Key: other, Owner: "n"}})
			}
		}
	})
}

// A server out of memory leaves everything to the rest, which says so, or does without memory.
func TestAFullServerTakesAndLeavesNothing(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	c := join(t, st)
	c.leaves("vacant", "a")
	token := c.Hold("held", "a").Token
	sv.Do(t, "CONFIG", "SET", "maxmemory", "1")
	if got, byTake := c.takes(redistest.Request("vacant", "b")).arrives(t.Context(), st); byTake || got.Err == nil {
		t.Errorf("take: got %+v, by take.lua %v; want an error by the rest", got, byTake)
	}
	q := store.ReleaseRequest{Key: "held", Owner: "a", Token: token, Clean: true}
	if got, answered := st.leaving.alone(t.Context(), st.leaving.request(c.session, &q, noAddress)); answered {
		t.Errorf("leave: got %+v, want it left alone", got)
	}
	if !c.release(q).WasHeld {
		t.Error("release: got WasHeld false, want true")
	}
}

// An epoch vouches for tokens by the clock that was seen of its own bucket. If the clock was set in between, keys of two
// buckets don't share a script.
func TestAScriptIsOfOneClock(t *testing.T) {
	onPromotedServer(t, func(t *testing.T, sv *server, _ func()) {
		for _, set := range []time.Duration{-10 * time.Second, 10 * time.Second} {
			st := sv.store(t)
			c := join(t, st)
			var all []*taking
			for i, key := range []string{"one", "other"} {
				c.leaves(key, "a")
				c.seesAgain(key)
				if i == 1 {
					seen := *st.sightings[bucketOf(key)].Load()
					seen.clock += set.Microseconds()
					st.saw(key, &seen)
				}
				all = append(all, &taking{session: c.session, request: redistest.Request(key, "b"), address: noAddress})
			}
			var cl call
			if in := st.putTakes(&cl, all); len(in) != 1 || in[0] != all[0] {
				t.Errorf("the clock was set by %v: got %d keys in a script, want that of the first", set, len(in))
			}
		}
	})
}
