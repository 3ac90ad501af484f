// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

const second = time.Second // the TTL of these tests

// A caller drives one session.
type caller struct {
	*testing.T

	store.Session
	woken chan struct{} // has an element when the client is to ask
}

func call(t *testing.T, s store.Store) caller {
	t.Helper()
	woken := make(chan struct{}, 1)
	session, err := s.Open("caller", func(e store.Event) {
		if e.Kind == store.EventWake {
			select {
			case woken <- struct{}{}:
			default:
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return caller{t, session, woken}
}

func (c caller) close() { _ = c.Close(context.Background()) }

func (c caller) acquire(owner string) store.AcquireReply {
	return c.Acquire(context.Background(), []store.AcquireRequest{{
		Key: "key", Owner: owner, TTL: second, GrantTTL: second, WaiterTTL: second, Wait: true,
	}})[0]
}

func (c caller) hold(owner string) store.Grant {
	c.Helper()
	reply := c.acquire(owner)
	if reply.Status != store.Granted {
		c.Fatalf("Acquire of a free key: got %+v, want it granted", reply)
	}
	return reply.Grant
}

// keeps renews a lease for so long. It has to last.
func (c caller) keeps(owner string, g store.Grant, d time.Duration) {
	c.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(second / 3)
		err := c.Renew(context.Background(), []store.RenewRequest{{Key: "key", Owner: owner, TTL: second, Token: g.Token}})[0].Err
		if err != nil {
			c.Fatalf("Renew: got %v, want the lease to go on", err)
		}
	}
}

// onThree runs a test with each of three frail nodes.
func onThree(t *testing.T, test func(t *testing.T, nodes []*frail, q store.Store, node int)) {
	t.Helper()
	for node := range 3 {
		synctest.Test(t, func(t *testing.T) {
			nodes := []*frail{newFrail(), newFrail(), newFrail()}
			test(t, nodes, over(t, nodes[0], nodes[1], nodes[2]), node)
		})
	}
}

// A node that comes back is asked for a vote until it gives one, so that the next failure costs no lease.
func TestALostVoteIsTakenAgainAfterTheGrace(t *testing.T) {
	t.Parallel()
	onThree(t, func(t *testing.T, nodes []*frail, q store.Store, node int) {
		c := call(t, q)
		defer c.close()
		g := c.hold("owner")
		nodes[node].set(killed)
		c.keeps("owner", g, 2*second)
		nodes[node].restart()
		c.keeps("owner", g, gracePeriod+2*second)
		nodes[(node+1)%3].set(killed)
		c.keeps("owner", g, 3*second)
	})
}

// The same, if a client that has died has the vote.
func TestALostVoteIsTakenAgainBehindTheDead(t *testing.T) {
	t.Parallel()
	onThree(t, func(t *testing.T, nodes []*frail, q store.Store, node int) {
		others := []store.Store{newFrail(), newFrail(), newFrail()}
		others[node] = nodes[node]
		c, dies := call(t, q), call(t, over(t, others...))
		defer c.close()
		nodes[node].set(killed)
		g := c.hold("owner")
		nodes[node].set(sound)
		dies.hold("dead")
		dies.close()
		c.keeps("owner", g, 3*second)
		nodes[(node+1)%3].set(killed)
		c.keeps("owner", g, 3*second)
	})
}

func TestCloseWaitsForReleases(t *testing.T) {
	t.Parallel()
	onThree(t, func(t *testing.T, nodes []*frail, q store.Store, node int) {
		c, next := call(t, q), call(t, q)
		defer next.close()
		g := c.hold("owner")
		nodes[node].set(hung)
		c.Release(context.Background(), []store.ReleaseRequest{{Key: "key", Owner: "owner", Token: g.Token, Clean: true}})
		time.AfterFunc(second/3, func() { nodes[node].set(sound) })
		c.close()
		next.hold("next")
	})
}

// A store that refuses this user.
type denying struct{ store.Store }

func (d denying) Open(id string, notify func(store.Event)) (store.Session, error) {
	s, err := d.Store.Open(id, notify)
	return denyingSession{s}, err
}

type denyingSession struct{ store.Session }

func (denyingSession) Acquire(context.Context, []store.AcquireRequest) []store.AcquireReply {
	return []store.AcquireReply{{Err: store.ErrDenied}}
}

func TestANodeThatRefusesCountsAsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := call(t, over(t, memstore.New(), memstore.New(), denying{memstore.New()}))
		defer c.close()
		c.hold("owner")
	})
	synctest.Test(t, func(t *testing.T) {
		c := call(t, over(t, memstore.New(), denying{memstore.New()}, denying{memstore.New()}))
		defer c.close()
		if err := c.acquire("owner").Err; err == nil || err.Error() != store.ErrDenied.Error() {
			t.Errorf("Acquire when two of three refuse: got %v, want ErrDenied", err)
		}
	})
}

func TestAFarNodeDelaysNobody(t *testing.T) {
	t.Parallel()
	onThree(t, func(t *testing.T, nodes []*frail, q store.Store, node int) {
		c := call(t, q)
		defer c.close()
		nodes[node].set(far)
		for _, owner := range []string{"learns", "knows"} {
			began := time.Now()
			c.hold(owner)
			c.Release(context.Background(), []store.ReleaseRequest{{Key: "key", Owner: owner, Clean: true}})
			if took := time.Since(began); owner == "knows" && took > 4*time.Millisecond { // two round trips to the others
				t.Errorf("Acquire and Release with node %d far away took %v", node, took)
			}
			time.Sleep(second)
		}
	})
}

// A severed store is the others' too, but its own client does not reach it any more.
type severed struct{ *frail }

func (s severed) Open(id string, notify func(store.Event)) (store.Session, error) {
	return &severedSession{&frailSession{f: s.frail, id: id, notify: notify}}, nil
}

type severedSession struct{ *frailSession }

func (*severedSession) Release(context.Context, []store.ReleaseRequest) []store.ReleaseReply {
	return []store.ReleaseReply{{Err: store.ErrUnreachable}}
}

// The door of a key may have a holder that is cut off from it, and can't give it back.
func TestNobodyWaitsLongAtADoorThatIsStuck(t *testing.T) {
	t.Parallel()
	for n, majority := range map[int]int{3: 2, 5: 3} {
		for first := range n {
			synctest.Test(t, func(t *testing.T) { waitsBehindACutOff(t, n, n-majority, first) })
		}
	}
}

// waitsBehindACutOff has a holder who is cut off from so many nodes, from the first on.
func waitsBehindACutOff(t *testing.T, n, cut, first int) {
	t.Helper()
	theirs, ours := make([]store.Store, n), make([]store.Store, n)
	for i := range n {
		node := newFrail()
		theirs[i], ours[i] = node, node
		if (i-first+n)%n < cut {
			theirs[i] = severed{node}
		}
	}
	holder, next := call(t, over(t, theirs...)), call(t, over(t, ours...))
	defer next.close()
	defer holder.close()
	holder.hold("holder")
	if reply := next.acquire("next"); reply.Status != store.Waiting {
		t.Fatalf("Acquire of a key that is held: got %+v, want to wait", reply)
	}
	time.Sleep(second / 2)
	if len(next.woken) > 0 {
		t.Error("a waiter was woken while the lease lasted")
	}
	holder.Renew(context.Background(), []store.RenewRequest{{Key: "key", Owner: "holder", TTL: second, Token: 1}})
	holder.Release(context.Background(), []store.ReleaseRequest{{Key: "key", Owner: "holder", Clean: true}})
	released := time.Now()
	<-next.woken
	for next.acquire("next").Status != store.Granted {
		<-next.woken
	}
	if took := time.Since(released); took > second*7/10 {
		t.Errorf("%d nodes, %d cut off from the %d. on: the next holder waited %v after the release, want some fifths of a TTL", n, cut, first, took)
	}
}

// Nobody looks after a door whose key the claim has without it.
func TestADoorIsWatchedWhileItIsWaitedForOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes := []*frail{newFrail(), newFrail(), newFrail()}
		q := over(t, nodes[0], nodes[1], nodes[2])
		c, holder := call(t, q), call(t, q)
		defer c.close()
		holder.hold("holder")
		c.acquire("owner")
		door := nodes[c.Lane("key")]
		door.set(killed)
		holder.Release(context.Background(), []store.ReleaseRequest{{Key: "key", Owner: "holder", Clean: true}})
		holder.close()
		g := c.hold("owner")
		c.keeps("owner", g, second)
		before := nodes[0].looks() + nodes[1].looks() + nodes[2].looks()
		c.keeps("owner", g, 10*second)
		if n := nodes[0].looks() + nodes[1].looks() + nodes[2].looks() - before; n > 0 {
			t.Errorf("the holder has looked %d times at who has its key", n)
		}
		door.set(sound)
	})
}

// A node that is dead and one that is far make no majority without the third.
func TestAReleaseCountsAnswersOnly(t *testing.T) {
	t.Parallel()
	for step := 1; step < 3; step++ {
		onThree(t, func(t *testing.T, nodes []*frail, q store.Store, node int) {
			c := call(t, q)
			defer c.close()
			nodes[(node+step)%3].set(far)
			c.hold("learns")
			c.Release(context.Background(), []store.ReleaseRequest{{Key: "key", Owner: "learns", Clean: true}})
			time.Sleep(second)
			c.hold("owner")
			nodes[node].set(killed)
			if r := c.Release(context.Background(), []store.ReleaseRequest{{Key: "key", Owner: "owner", Clean: true}})[0]; !r.WasHeld {
				t.Errorf("Release with node %d dead and node %d far: got %+v, want that it was held", node, (node+step)%3, r)
			}
		})
	}
}

// A client that ends waits for no server that is down.
func TestCloseDoesWithoutAMinority(t *testing.T) {
	t.Parallel()
	onThree(t, func(t *testing.T, nodes []*frail, q store.Store, node int) {
		c := call(t, q)
		g := c.hold("owner")
		nodes[node].set(killed)
		c.Release(context.Background(), []store.ReleaseRequest{{Key: "key", Owner: "owner", Token: g.Token, Clean: true}})
		began := time.Now()
		if err := c.Close(context.Background()); err != nil || time.Since(began) > second/10 {
			t.Errorf("Close with node %d down: got %v after %v, want none, at once", node, err, time.Since(began))
		}
	})
}
