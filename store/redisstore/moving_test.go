// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// A movingKey is a lock whose slot moves. Its owner "a" has it, some wait, and a withdrawn
// owner is remembered no longer.
type movingKey struct {
	waiters []string // the deadline (ms) of each, in the queue's order
	shared  bool     // "a" has it together with "b"
	calls   func(st *Store, key string) call
}

const (
	never = "1"             // the waiter died long ago
	ever  = "9999999999999" // it lives
)

// movingCalls are runs of each script, in the states in which it writes and deletes most.
func movingCalls() map[string]movingKey {
	request := func(key, owner string) *store.AcquireRequest {
		return &store.AcquireRequest{Key: key, Owner: owner, TTL: long, GrantTTL: long, WaiterTTL: long, Wait: true, QueueLimit: 2}
	}
	acquire := func(change func(*store.AcquireRequest)) func(*Store, string) call {
		return func(st *Store, key string) (c call) {
			q := request(key, "new")
			change(q)
			must(c.acquire(st.settings.prefix, q, noAddress, st.guard(key)))
			return c
		}
	}
	release := func(change func(*store.ReleaseRequest)) func(*Store, string) call {
		return func(st *Store, key string) (c call) {
			q := &store.ReleaseRequest{Key: key, Owner: "a", Token: 1}
			change(q)
			must(c.release(st.settings.prefix, q, noAddress, st.guard(key)))
			return c
		}
	}
	requeue := func(q *store.ReleaseRequest) { q.Requeue = request(q.Key, "again") }
	uncertain := func(q *store.ReleaseRequest) { q.Uncertain = true }
	forced := func(shared bool) func(*Store, string) call {
		return func(st *Store, key string) (c call) {
			c.script = forceScript
			c.allKeys(st.settings.prefix, key, shared)
			c.number(0)
			c.guard(st.guard(key))
			return c
		}
	}
	limited := func(limit int32) func(*Store, string) call {
		return func(st *Store, key string) (c call) {
			c.setLimit(st.settings.prefix, key, limit, st.guard(key))
			return c
		}
	}
	inspected := func(shared bool) func(*Store, string) call {
		return func(st *Store, key string) (c call) {
			c.inspect(st.settings.prefix, key, page{shown: shown}, shared)
			return c
		}
	}
	alive, dead := []string{ever}, []string{never, never}
	share := store.Share{Mode: store.Shared}
	releaseShares := func(change func(*store.ReleaseRequest)) func(*Store, string) call {
		return func(st *Store, key string) (c call) {
			q := &store.ReleaseRequest{Key: key, Owner: "a", Token: 1}
			change(q)
			must(c.releaseShares(st.settings.prefix, q, noAddress, st.guard(key)))
			return c
		}
	}
	return map[string]movingKey{
		"a share, acquired": {waiters: alive, shared: true, calls: func(st *Store, key string) (c call) {
			q := request(key, "new")
			q.Share = share
			must(c.acquireShares(st.settings.prefix, q, noAddress, st.guard(key)))
			return c
		}},
		"a share, released":             {waiters: alive, shared: true, calls: releaseShares(func(*store.ReleaseRequest) {})},
		"a share, released, and queued": {waiters: dead, shared: true, calls: releaseShares(requeue)},
		"a share, forced":               {waiters: alive, shared: true, calls: forced(true)},
		"a share, renewed": {waiters: alive, shared: true, calls: func(st *Store, key string) (c call) {
			c.renew(st.settings, []store.RenewRequest{{Key: key, Owner: "a", TTL: 2 * long, Share: share}}, []int{0}, renewShare)
			return c
		}},
		"a share, its limit set":            {waiters: alive, shared: true, calls: limited(1)},
		"a share, its limit forgotten":      {waiters: dead, shared: true, calls: limited(0)},
		"a share, inspected":                {waiters: alive, shared: true, calls: inspected(true)},
		"acquire, waits behind others":      {waiters: alive, calls: acquire(func(*store.AcquireRequest) {})},
		"acquire, has the key":              {waiters: alive, calls: acquire(func(q *store.AcquireRequest) { q.Owner = "a" })},
		"acquire, does not wait":            {waiters: alive, calls: acquire(func(q *store.AcquireRequest) { q.Wait = false })},
		"acquire, the queue full of dead":   {waiters: dead, calls: acquire(func(*store.AcquireRequest) {})},
		"release, the next is alive":        {waiters: alive, calls: release(func(*store.ReleaseRequest) {})},
		"release, all are dead":             {waiters: dead, calls: release(func(*store.ReleaseRequest) {})},
		"release, uncertain":                {waiters: alive, calls: release(uncertain)},
		"release, queues again":             {waiters: alive, calls: release(requeue)},
		"release, queues again behind dead": {waiters: dead, calls: release(requeue)},
		"release, queues again behind two":  {waiters: []string{never, ever}, calls: release(requeue)},
		"release, keeps the key back":       {waiters: []string{never, ever}, calls: release(func(q *store.ReleaseRequest) { q.HoldBack = long })},
		"release, the only waiter leaves":   {waiters: alive, calls: release(func(q *store.ReleaseRequest) { q.Owner, q.Uncertain = "waiter-0", true })},
		"release, fast": {waiters: alive, calls: func(st *Store, key string) (c call) {
			c.releaseFast(st.settings.prefix, &store.ReleaseRequest{Key: key, Owner: "a", Token: 1}, st.settings.counterTTL)
			return c
		}},
		"force, the next is alive": {waiters: alive, calls: forced(false)},
		"force, all are dead":      {waiters: dead, calls: forced(false)},
		"reassert": {waiters: alive, calls: func(st *Store, key string) (c call) {
			c.reassert(st, &store.RenewRequest{Key: key, Owner: "a", TTL: long, Token: 1}, noAddress, false)
			return c
		}},
		"renew": {waiters: alive, calls: func(st *Store, key string) (c call) {
			c.renew(st.settings, []store.RenewRequest{{Key: key, Owner: "a", TTL: 2 * long, Token: 2e15}}, []int{0}, renewWhole)
			return c
		}},
		"inspect": {waiters: alive, calls: inspected(false)},
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// A moving is a Cluster of which a slot is moved by hand, from one node to another.
type moving struct {
	*server
	from, to   *server
	slot       string
	host, port string // of to
}

// Redis looks at the state of the slot at each command of a script. A key that is not there
// counts as moved already, also if the script itself has just deleted it.
func TestNoScriptStopsHalfwayWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	sv, nodes := ownCluster(t)
	st := sv.store(t)
	m := newMoving(t, sv, nodes, "key0")
	states := movingCalls()
	keys := make(map[string]string) // by the case's name
	unused := sameSlot("key0")
	for name, state := range states {
		for _, moved := range movedKinds {
			key := unused()
			keys[name+" without "+moved] = key
			m.make(t, key, state)
		}
	}
	m.begin(t)
	done := make(map[string]int)
	for _, name := range slices.Sorted(maps.Keys(states)) {
		for _, moved := range movedKinds {
			key := keys[name+" without "+moved]
			for _, kind := range []byte(moved) {
				m.move(t, m.redisKey(key, kind))
			}
			c := states[name].calls(st, key)
			if m.wholeOrNothing(t, st, name+" without "+moved, key, &c) {
				done[name]++
			}
		}
	}
	for _, name := range []string{"release, fast", "renew", "inspect", "acquire, waits behind others", "a share, renewed", "a share, inspected"} { // which delete nothing, or not before they write
		if done[name] == 0 {
			t.Errorf("%s: was never done, want it done where all its keys are there", name)
		}
	}
}

// newMoving is for the slot of a key.
func newMoving(t *testing.T, sv *server, nodes []*server, key string) *moving {
	t.Helper()
	name := sv.redisKey(key, 'l')
	from := owner(t, nodes, name)
	m := &moving{server: sv, from: nodes[from], to: nodes[(from+1)%len(nodes)], slot: sv.Do(t, "CLUSTER", "KEYSLOT", name)}
	m.host, m.port, _ = net.SplitHostPort(m.to.own.Addr)
	return m
}

// sameSlot returns a source of keys in one slot.
func sameSlot(first string) (next func() string) {
	i := 0
	return func() string {
		for {
			i++
			if key := "key" + strconv.Itoa(i); bucketOf(key) == bucketOf(first) {
				return key
			}
		}
	}
}

// movedKinds are which of a lock's Redis keys have moved already.
var movedKinds = []string{"", "l", "q", "w", "f", "x", "s", "h", "m"}

// make writes all Redis keys of a lock.
func (m *moving) make(t *testing.T, key string, state movingKey) {
	t.Helper()
	if state.shared {
		m.Do(t, "SET", m.redisKey(key, 'l'), "=r 1000 999 0 0 0 0 0 -", "PX", "1000000")
		for i, owner := range []string{"a", "b"} {
			m.Do(t, "ZADD", m.redisKey(key, 's'), ever, owner)
			m.Do(t, "HSET", m.redisKey(key, 'h'), owner, fmt.Sprint("- - 0 0 ", 999+i, " -"))
		}
		m.Do(t, "SET", m.redisKey(key, 'm'), "2")
	} else {
		m.Do(t, "SET", m.redisKey(key, 'l'), "1000 a - t -", "PX", "1000000")
	}
	m.Do(t, "SET", m.redisKey(key, 'f'), "1000", "PX", "1000000")
	m.Do(t, "ZADD", m.redisKey(key, 'x'), "1", "withdrawn")
	for i, deadline := range state.waiters {
		waiter := "waiter-" + strconv.Itoa(i)
		m.Do(t, "ZADD", m.redisKey(key, 'q'), strconv.Itoa(100+i), waiter)
		m.Do(t, "HSET", m.redisKey(key, 'w'), waiter, deadline+" - 10000 - somebody")
	}
}

func (m *moving) begin(t *testing.T) {
	t.Helper()
	m.to.Do(t, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.from.Do(t, "CLUSTER", "MYID"))
	m.from.Do(t, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.to.Do(t, "CLUSTER", "MYID"))
}

func (m *moving) move(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		m.from.Do(t, "MIGRATE", m.host, m.port, name, "0", "5000")
	}
}

// content is what the node that gives the slot away has of a lock.
func (m *moving) content(t *testing.T, key string) (all []string) {
	t.Helper()
	for _, kind := range []byte(lockKinds + shareKinds) {
		all = append(all, m.from.dumpOf(m.redisKey(key, kind)))
	}
	return append(all, m.from.dumpOf(m.epoch(bucketOf(key))))
}

// dumpOf is a Redis key's content, or the error of asking for it.
func (sv *server) dumpOf(name string) string {
	text, err := sv.Try("DUMP", name)
	return fmt.Sprintf("%q %v", text, err)
}

// wholeOrNothing makes a call on the node that gives the slot away, and reports whether all
// of it happened. Otherwise nothing may have happened, and the client may try again.
func (m *moving) wholeOrNothing(t *testing.T, st *Store, what, key string, c *call) (done bool) {
	t.Helper()
	before := m.content(t, key)
	names, args := c.words()
	err := m.from.Raw.Do(t.Context(), m.from.Raw.B().Eval().Script(c.script.Source).Numkeys(int64(len(names))).Key(names...).Arg(args...).Build()).Error()
	if err == nil {
		return true
	}
	if after := m.content(t, key); !slices.Equal(after, before) {
		t.Errorf("%s: got %v, and what was\n%q is now\n%q", what, err, before, after)
	}
	if means := st.conn.Failure(err); !errors.Is(means, store.ErrUnreachable) {
		t.Errorf("%s: got %v, want one that wraps ErrUnreachable", what, means)
	}
	return false
}

// A holder gives its key back while the slot moves, and queues again for others of its own.
// Nobody loses anything, and everybody is served when the move is over.
func TestWhoeverWaitsGoesOnWaitingWhileTheSlotMoves(t *testing.T) {
	t.Parallel()
	sv, nodes := ownCluster(t)
	st := sv.store(t)
	m := newMoving(t, sv, nodes, "key0")
	key := sameSlot("key0")()
	ours, theirs := newClient(t, st), newClient(t, st)
	first, err := ours.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	sv.Do(t, "ZADD", sv.redisKey(key, 'q'), "1", "killed")
	sv.Do(t, "HSET", sv.redisKey(key, 'w'), "killed", never+" - 10000 - somebody")
	sv.Do(t, "ZADD", sv.redisKey(key, 'x'), "1", "withdrawn")
	remote := theirs.LockChan(t.Context(), key, asynclock.WithDescription("another"))
	kit.Eventually(t, "another client waits for a message", func() bool {
		entries := strings.Fields(sv.Do(t, "HVALS", sv.redisKey(key, 'w'))) // that of the killed one first, or last
		i := slices.Index(entries, "another]")
		if i < 0 {
			i = slices.Index(entries, "another")
		}
		return i >= 3 && entries[i-3] != noAddress
	})
	local := ours.LockChan(t.Context(), key, asynclock.WithTTL(long)) // another TTL, so the key can't pass to it inside the client

	m.begin(t)
	unlocked := make(chan error, 1)
	go func() { unlocked <- first.Unlock(t.Context()) }() // ends with the release's time limit; the test waits for it
	select {
	case got := <-remote:
		_, err := got.Lease()
		t.Fatalf("another client, while the slot moves: got %v, want it to wait", err)
	case got := <-local:
		_, err := got.Lease()
		t.Fatalf("the same client, while the slot moves: got %v, want it to wait", err)
	case <-time.After(time.Second):
	}
	m.callOff(t)
	for range 2 {
		var got asynclock.Result
		select {
		case got = <-remote:
			remote = nil
		case got = <-local:
			local = nil
		case <-time.After(time.Minute):
			t.Fatal("nobody got the key in a minute")
		}
		lease, err := got.Lease()
		if err != nil {
			t.Fatalf("after the move: got %v, want a lease", err)
		}
		if err := lease.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock after the move: got %v, want no error", err)
		}
	}
	if err := <-unlocked; err != nil && !errors.Is(err, asynclock.ErrOutcomeUnknown) {
		t.Errorf("Unlock while the slot moved: got %v, want no error or ErrOutcomeUnknown", err)
	}
}

// end ends the move after all has moved.
func (m *moving) end(t *testing.T) {
	t.Helper()
	id := m.to.Do(t, "CLUSTER", "MYID")
	for _, node := range []*server{m.to, m.from} {
		node.Do(t, "CLUSTER", "SETSLOT", m.slot, "NODE", id)
	}
}

// callOff ends the move before anything has moved. Another node would begin with a grace.
func (m *moving) callOff(t *testing.T) {
	t.Helper()
	for _, node := range []*server{m.to, m.from} {
		node.Do(t, "CLUSTER", "SETSLOT", m.slot, "STABLE")
	}
}

// A server answers TRYAGAIN to a script that names a key that is there and one
// that is not, as long as their slot is on the move; and most locks have no
// queue.
func TestHoldingsOfASlotThatMovesAreRenewed(t *testing.T) {
	t.Parallel()
	sv, nodes := ownCluster(t)
	c := join(t, sv.store(t))
	var renewals []store.RenewRequest
	for i := 0; len(renewals) < 5; i++ {
		key := "key" + strconv.Itoa(i)
		if bucketOf(key) == bucketOf("key0") {
			renewals = append(renewals, store.RenewRequest{Key: key, Owner: "a", TTL: 2 * long, Token: c.Hold(key, "a").Token})
		}
	}
	contended, handedOn, lost, stolen := &renewals[1], &renewals[2], &renewals[3], &renewals[4]
	c.waitForMessage(contended.Key, "b")
	handedOn.Token += 1e12
	handedOn.NotifyQueued = true
	sv.Do(t, "DEL", sv.redisKey(lost.Key, 'l'))
	stolen.Owner = "thief"

	was := map[int]error{3: store.ErrExpired, 4: store.ErrStolen}
	renewed := func(when string, ttl time.Duration) {
		t.Helper()
		for i := range renewals {
			renewals[i].TTL = ttl
		}
		for i, got := range c.session.Renew(t.Context(), renewals) {
			want := was[i]
			if !errors.Is(got.Err, want) {
				t.Errorf("%s: Renew %d: got %v, want %v", when, i, got.Err, want)
			}
			if left := sv.pttl(t, renewals[i].Key, 'l'); want == nil && left <= ttl-long {
				t.Errorf("%s: TTL %d: got %v, want %v", when, i, left, ttl)
			}
		}
	}
	m := newMoving(t, sv, nodes, "key0")
	m.begin(t)
	renewed("before any key has moved", 2*long)
	if got := c.renew(renewals[0]); got.Waiters != 1 {
		t.Errorf("with the queue out of reach: Waiters: got %d, want 1, for all that is known", got.Waiters)
	}
	for n, kind := range []byte("lqwf") {
		for _, q := range renewals {
			m.move(t, sv.redisKey(q.Key, kind))
		}
		renewed("after some have moved", time.Duration(3+n)*long)
	}
	m.move(t, sv.epoch(bucketOf("key0")))
	m.end(t)

	// The next renewal does the work that had to wait for the move. The new node can't know
	// whether anything was lost on the way, and believes an owner that says so.
	was[3] = nil
	renewed("after the move", 10*long)
	if got := c.renew(*contended); got.Waiters != 1 {
		t.Errorf("Waiters: got %d, want 1", got.Waiters)
	}
	if got := sv.Number(t, "GET", sv.redisKey(handedOn.Key, 'f')); got != handedOn.Token {
		t.Errorf("counter: got %d, want %d as used", got, handedOn.Token)
	}
}

func TestASlotMovesUnderAWaiter(t *testing.T) {
	t.Parallel()
	sv, nodes := ownCluster(t)
	st := sv.newStore(t, WithoutFailoverGrace())
	a, b := join(t, st), join(t, st)
	a.Hold("key", "a")
	b.Wait("key", "b")
	m := newMoving(t, sv, nodes, "key")
	m.begin(t)
	m.move(t, sv.redisKey("key", 'l'), sv.redisKey("key", 'f')) // half of it: the rest must not be taken for all there is
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	got := a.session.Acquire(ctx, []store.AcquireRequest{redistest.Request("key", "c")})[0]
	cancel()
	if got.Err == nil {
		t.Errorf("Acquire while the slot is half moved: got %+v, want an error", got)
	}
	m.move(t, sv.redisKey("key", 'q'), sv.redisKey("key", 'w'))
	m.end(t)

	a.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "c"}})
	if got := b.Wait("key", "b"); got.Rank != 0 {
		t.Errorf("rank after the move: got %d, want 0", got.Rank)
	}
	if inbox := b.session.sharded[bucketOf("key")].Load(); inbox != nil { // since Redis 7
		kit.Eventually(t, "messages come through the new node", func() bool {
			n, err := m.to.Try("PUBSUB", "SHARDNUMSUB", inbox.channel.name)
			return err == nil && strings.HasSuffix(n, " 1]") && b.Wait("key", "b").Recheck == 0
		})
	}
	a.release(store.ReleaseRequest{Key: "key", Owner: "a"})
	b.Heard(store.EventGrant, "b")
}
