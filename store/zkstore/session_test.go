// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
	"github.com/asynclock/asynclock-go/watchdog"
)

// testPatience is how long a test waits for what has to happen.
const testPatience = time.Minute

// locks makes a client of asynclock, which is closed before its store.
func locks(t testing.TB, st *Store, options ...asynclock.ClientOption) *asynclock.Client {
	t.Helper()
	c, err := asynclock.New(st, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.Close(ctx) // whatever the test has left
	})
	return c
}

func lock(t testing.TB, c *asynclock.Client, key string, options ...asynclock.LockOption) *asynclock.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	lease, err := c.Lock(ctx, key, options...)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func claim(t testing.TB, pending <-chan asynclock.Result) *asynclock.Lease {
	t.Helper()
	select {
	case got := <-pending:
		lease, err := got.Lease()
		if err != nil {
			t.Fatal(err)
		}
		return lease
	case <-time.After(testPatience):
		t.Fatalf("nobody has got the key in %v", testPatience)
		return nil
	}
}

func unlock(t testing.TB, lease *asynclock.Lease) {
	t.Helper()
	if err := lease.Unlock(t.Context()); err != nil {
		t.Errorf("Unlock: got %v, want no error", err)
	}
}

func awaitEnd(t testing.TB, lease *asynclock.Lease) {
	t.Helper()
	select {
	case <-lease.Done():
	case <-time.After(testPatience):
		t.Fatal("the lease has not ended")
	}
}

// awaitRenewal waits until a lease's trust deadline has moved. It is a time of the
// wall, and trembles.
func awaitRenewal(t testing.TB, lease *asynclock.Lease) {
	t.Helper()
	deadline := lease.Deadline().Add(100 * time.Millisecond)
	kit.Eventually(t, "a renewal", func() bool { return lease.Deadline().After(deadline) || lease.Err() != nil })
}

func wantWaiters(t testing.TB, c *asynclock.Client, key string, n int) {
	t.Helper()
	kit.Eventually(t, "waiters", func() bool {
		info, err := c.Inspect(t.Context(), key)
		return err == nil && info.Waiters == n
	})
}

// wantClosedByForce checks the cause of a lease's end. The server may tell first that
// the node is gone, or that the session is.
func wantClosedByForce(t testing.TB, lease *asynclock.Lease) {
	t.Helper()
	err := lease.Err()
	if ofSession := errors.Is(err, store.ErrExpired) && strings.Contains(err.Error(), "session"); !ofSession && !errors.Is(err, asynclock.ErrForced) {
		t.Errorf("the lease: got %v, want ErrForced, or ErrExpired because of the session", err)
	}
}

// A session that somebody closes takes the lease with it, long before its timeout,
// and the session that follows does not bring it back.
func TestASessionClosedByForceEndsLeases(t *testing.T) {
	t.Parallel()
	w, root := newWire(t), newRoot()
	ours, theirs := locks(t, open(t, root, WithDialer(w.dial))), locks(t, open(t, root))
	first, other := lock(t, ours, "key"), lock(t, ours, "other")
	pending := theirs.LockChan(t.Context(), "key")
	wantWaiters(t, theirs, "key", 1)
	start := time.Now()
	w.expire()
	next := claim(t, pending)
	for _, lease := range []*asynclock.Lease{first, other} {
		awaitEnd(t, lease)
		wantClosedByForce(t, lease)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %v, want it at once", took)
	}
	if next.Token() <= first.Token() {
		t.Errorf("token: got %d after %d, want more", next.Token(), first.Token())
	}
	if err := first.Unlock(t.Context()); !errors.Is(err, store.ErrLost) {
		t.Errorf("late Unlock: got %v, want ErrLost", err)
	}
	// The client goes on in its new session, and nobody is harmed.
	unlock(t, lock(t, ours, "other"))
	if next.Err() != nil {
		t.Errorf("the next lease: got %v, want it valid", next.Err())
	}
	unlock(t, next)
}

// A holding of a session that is over is not renewed by the next one.
func TestANewSessionRenewsNothingOfTheOld(t *testing.T) {
	t.Parallel()
	w, root := newWire(t), newRoot()
	st := open(t, root, WithDialer(w.dial))
	s := join(t, st, nil)
	r := store.AcquireRequest{Key: "key", Owner: "owner", TTL: time.Minute, GrantTTL: time.Minute, WaiterTTL: time.Minute, Wait: true}
	reply := acquire(t, s, r)
	old, _ := st.health.now()
	w.expire()
	kit.Eventually(t, "a new session", func() bool {
		session, _ := st.health.now()
		return session != old
	})
	kit.Eventually(t, "the loss", func() bool {
		got := s.Renew(t.Context(), []store.RenewRequest{{Key: "key", Owner: "owner", TTL: time.Minute, Token: reply.Token}})[0].Err
		return errors.Is(got, store.ErrExpired)
	})
	if got := s.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "owner", Token: reply.Token}})[0]; got.WasHeld || got.Err != nil {
		t.Errorf("Release: got %+v, want that nothing was held", got)
	}
	if again := acquire(t, s, r); again.Status != store.Granted || again.Token <= reply.Token {
		t.Errorf("Acquire in the new session: got %+v, want a new grant above %d", again, reply.Token)
	}
}

// A waiter whose session has ended queues again.
func TestAWaiterOutlivesItsSession(t *testing.T) {
	t.Parallel()
	w, root := newWire(t), newRoot()
	ours, theirs := locks(t, open(t, root, WithDialer(w.dial))), locks(t, open(t, root))
	first := lock(t, theirs, "key")
	pending := ours.LockChan(t.Context(), "key")
	wantWaiters(t, theirs, "key", 1)
	w.expire()
	wantWaiters(t, theirs, "key", 1)
	unlock(t, first)
	unlock(t, claim(t, pending))
}

// One client is partitioned from the ensemble. Its lease ends, because renewals
// fail, before the server gives the key to the next.
func TestACutOffClientHasLostBeforeTheNextHas(t *testing.T) {
	t.Parallel()
	cutOff(t, zktest.Servers(t))
}

func cutOff(t *testing.T, servers []string) {
	t.Helper()
	const timeout = 3 * time.Second
	w, root := newWire(t), newRoot()
	ours := locks(t, openOn(t, servers, root, WithDialer(w.dial), WithSessionTimeout(timeout)))
	theirs := locks(t, openOn(t, servers, root))
	first := lock(t, ours, "key")
	pending := theirs.LockChan(t.Context(), "key")
	wantWaiters(t, theirs, "key", 1)
	awaitRenewal(t, first)
	w.cut()
	next := claim(t, pending)
	passedOn := time.Now()
	awaitEnd(t, first)
	// Its deadline is what counts, and no goroutine that may have been late to see it.
	if end := first.Deadline(); end.After(passedOn) {
		t.Errorf("the old lease ended %v after the next began, want it before", end.Sub(passedOn))
	}
	if !errors.Is(first.Err(), asynclock.ErrNotRenewed) {
		t.Errorf("the old lease: got %v, want ErrNotRenewed", first.Err())
	}
	if next.Token() <= first.Token() {
		t.Errorf("token: got %d after %d, want more", next.Token(), first.Token())
	}
	w.mend()
	unlock(t, next)
	unlock(t, lock(t, ours, "key"))
}

// A TTL that is longer than the session's timeout counts as long as the session
// can be trusted, and no longer.
func TestTrustFollowsTheSessionNotTheTTL(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	w, root := newWire(t), newRoot()
	st := open(t, root, WithDialer(w.dial), WithSessionTimeout(timeout))
	if st.SessionTimeout() != timeout {
		t.Fatalf("session timeout: got %v, want %v", st.SessionTimeout(), timeout)
	}
	ours := locks(t, st, asynclock.WithTTL(time.Hour))
	lease := lock(t, ours, "key")
	if left := time.Until(lease.Deadline()); left > timeout*89/100 {
		t.Errorf("trust: got %v, want at most 89 %% of %v", left, timeout)
	}
	w.cut()
	start := time.Now()
	awaitEnd(t, lease)
	if took := lease.Deadline().Sub(start); took > timeout {
		t.Errorf("the lease ended %v after the cut, want it within %v", took, timeout)
	}
	w.mend()
}

// The server keeps a dead client's keys for its session's timeout, so a TTL can't
// be less.
func TestTTLsBelowTheSessionTimeoutAreRefused(t *testing.T) {
	t.Parallel()
	st, err := Open(zktest.Servers(t), WithRoot(newRoot()), WithTickTime(servers.Tick), WithSessionTimeout(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	c := locks(t, st, asynclock.WithTTL(20*time.Second))
	for _, option := range []asynclock.LockOption{asynclock.WithTTL(19 * time.Second), asynclock.WithMaxHold(time.Second)} {
		if _, err := c.Lock(t.Context(), "key", option); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("Lock: got %v, want ErrInvalidOption", err)
		}
	}
	unlock(t, lock(t, c, "key"))
	unlock(t, lock(t, c, "key", asynclock.WithMaxHold(time.Minute)))
}

// A store that is closed while somebody may be at work does not give the keys away.
func TestCloseLeavesWhatIsHeld(t *testing.T) {
	t.Parallel()
	root := newRoot()
	st := open(t, root, WithSessionTimeout(4*time.Second))
	s := join(t, st, nil)
	acquire(t, s, store.AcquireRequest{Key: "key", Owner: "owner", TTL: time.Minute, Description: "gone"})
	start := time.Now()
	st.Close()
	other := locks(t, open(t, root))
	if info, err := other.Inspect(t.Context(), "key"); err != nil || info.Holder != "gone" {
		t.Errorf("Inspect after Close: got %+v, %v, want it held", info, err)
	}
	unlock(t, lock(t, other, "key"))
	if took := time.Since(start); took < 3*time.Second {
		t.Errorf("the key was free after %v, want it after the session's timeout", took)
	}
	if _, err := st.Open("id", func(store.Event) {}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Open after Close: got %v, want ErrClosed", err)
	}
	st.Close()
}

// A store whose clients have given everything back closes its session.
func TestCloseEndsTheSession(t *testing.T) {
	t.Parallel()
	root := newRoot()
	st := open(t, root)
	s := join(t, st, nil)
	acquire(t, s, store.AcquireRequest{Key: "key", Owner: "owner", TTL: time.Millisecond, Description: "gone"})
	st.Close() // the TTL is over
	unlock(t, lock(t, locks(t, open(t, root)), "key"))
}

func acquire(t testing.TB, s store.Session, r store.AcquireRequest) store.AcquireReply {
	t.Helper()
	reply := s.Acquire(t.Context(), []store.AcquireRequest{r})[0]
	if reply.Err != nil {
		t.Fatalf("Acquire: got %v, want no error", reply.Err)
	}
	return reply
}

// A server that takes connections and says nothing does not keep clients from the
// others.
func TestASilentServerIsLeft(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	var dials atomic.Int32
	st := open(t, newRoot(), WithSessionTimeout(3*time.Second), WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) == 1 {
			address = silent.Addr().String()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}))
	unlock(t, lock(t, locks(t, st), "key"))
}

// A server that says nothing any more does not keep Close.
func TestCloseWaitsForNoServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	const long = 10 * time.Minute
	for name, silence := range map[string]func(*wire, *atomic.Bool){
		"the connected one": func(w *wire, _ *atomic.Bool) { w.cut() },
		"another one": func(w *wire, other *atomic.Bool) {
			other.Store(true)
			w.mend()
		},
	} {
		w := newWire(t)
		var other atomic.Bool
		st := open(t, newRoot(), WithSessionTimeout(long), WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if other.Load() {
				address = silent.Addr().String()
			}
			return w.dial(ctx, network, address)
		}))
		unlock(t, lock(t, locks(t, st), "key"))
		silence(w, &other)
		closed := make(chan struct{})
		go func() { // ends with Close
			st.Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(testPatience):
			t.Fatalf("%s is silent: Close has not returned in %v", name, testPatience)
		}
	}
}

// A key that is granted while the store is closed is nobody's: whether it is given
// away at once is decided already.
func TestNothingIsGrantedWhileClosing(t *testing.T) {
	t.Parallel()
	st := open(t, newRoot())
	s := join(t, st, nil).(*session)
	k := s.lockNodeOf("owner", target{"/lock", mutex})
	st.mu.Lock()
	k.setNodeLocked("/lock/node")
	k.phase, st.ending = holding, true
	st.mu.Unlock()
	reply := store.AcquireReply{Status: store.Granted}
	r := waits("owner")
	if k.finishRequest(&reply, &r); !errors.Is(reply.Err, store.ErrClosed) {
		t.Errorf("a grant while closing: got %+v, want ErrClosed", reply)
	}
	st.mu.Lock()
	k.phase = waiting
	st.mu.Unlock()
	if k.handOver(view{lock: "/lock", nodes: []node{{name: "node"}}}); k.phase != waiting {
		t.Error("a waiter was handed the key while closing, want it to wait")
	}
	st.mu.Lock()
	st.ending = false
	st.mu.Unlock()
}

// The heartbeat is answered whether the root is there or not.
func TestTheHeartbeatNeedsNoRoot(t *testing.T) {
	t.Parallel()
	st := open(t, newRoot())
	for range 2 {
		time.Sleep(servers.Tick) // of answers that follow each other closely only the first is remembered
		before := watchdog.Now()
		if err := st.confirm(); err != nil {
			t.Errorf("confirm: got %v, want an answer", err)
		}
		time.Sleep(servers.Tick) // more than the leader's delay
		if err := st.confirm(); err != nil {
			t.Errorf("confirm: got %v, want an answer", err)
		}
		if st.health.known < before {
			t.Error("two writes have proved nothing, want that the leader has heard of the first")
		}
		if err := st.makeLock(st.settings.names.root + "/key"); err != nil {
			t.Fatal(err)
		}
	}
}
