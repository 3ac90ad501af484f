// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// The tests here do to a server what others on it would mind.

func TestAServerThatForgotTheScripts(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t))
	const n = 2*redisconn.MaxPipeline + 1
	acquires := make([]store.AcquireRequest, n)
	renewals := make([]store.RenewRequest, n)
	for i := range n {
		acquires[i] = redistest.Request("key"+strconv.Itoa(i), "owner"+strconv.Itoa(i))
		renewals[i] = store.RenewRequest{Key: acquires[i].Key, Owner: acquires[i].Owner, TTL: long}
	}
	for range 2 {
		sv.Do(t, "SCRIPT", "FLUSH")
		for i, got := range c.session.Acquire(t.Context(), acquires) {
			if errors.Is(got.Err, store.ErrOutcomeUnknown) { // on a busy machine a call of so many may time out
				got = c.session.Acquire(t.Context(), acquires[i:i+1])[0]
			}
			if got.Status != store.Granted {
				t.Fatalf("Acquire %d: got %+v, want Granted", i, got)
			}
		}
		sv.Do(t, "SCRIPT", "FLUSH")
		for i, got := range c.session.Renew(t.Context(), renewals) {
			if got.Err != nil {
				t.Fatalf("Renew %d: got %v, want no error", i, got.Err)
			}
		}
	}
	sv.Do(t, "SCRIPT", "FLUSH")
	c.Hold("one", "a")
	sv.Do(t, "SCRIPT", "FLUSH")
	c.releaseHeld(store.ReleaseRequest{Key: "one", Owner: "a"})
	sv.Do(t, "SCRIPT", "FLUSH")
	if info := c.Inspect("key1"); !info.Held {
		t.Errorf("Inspect: got %+v, want it held", info)
	}
	sv.Do(t, "SCRIPT", "FLUSH")
	c.force("key1")
}

// calls is how often the server ran a command that was sent to it.
func (sv *server) calls(t *testing.T, command string) int {
	t.Helper()
	for line := range strings.Lines(sv.Do(t, "INFO", "commandstats")) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			n, _, _ := strings.Cut(rest, ",")
			count, err := strconv.Atoi(n)
			if err != nil {
				t.Fatal(err)
			}
			return count
		}
	}
	return 0
}

func TestOneCommandToTakeAndOneToGiveBack(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	a, b := join(t, st), join(t, st)
	a.leaves("warm", "a") // loads the scripts
	a.leaves("warm", "b")
	// Two connections of the store, one of the test; nothing else may be sent but
	// pings.
	sv.Do(t, "CONFIG", "RESETSTAT")
	for i := range 10 {
		owner := "o" + strconv.Itoa(i)
		token := a.Hold("key", owner).Token
		a.release(store.ReleaseRequest{Key: "key", Owner: owner, Token: token})
	}
	if got := sv.calls(t, "evalsha"); got != 20 {
		t.Errorf("EVALSHA for 10 acquires and releases: got %d, want 20", got)
	}
	for _, command := range []string{"eval", "script|load", "publish", "zadd", "zcard", "hset"} {
		if got := sv.calls(t, command); got != 0 {
			t.Errorf("%s: got %d calls, want none", command, got)
		}
	}

	// It is the same while somebody is remembered who was withdrawn.
	a.release(store.ReleaseRequest{Key: "key", Owner: "withdrawn", Uncertain: true})
	sv.Do(t, "CONFIG", "RESETSTAT")
	for i := range 10 {
		owner := "p" + strconv.Itoa(i)
		token := a.Hold("key", owner).Token
		a.release(store.ReleaseRequest{Key: "key", Owner: owner, Token: token})
	}
	if got, looks := sv.calls(t, "evalsha"), sv.calls(t, "hlen"); got != 20 || looks != 0 {
		t.Errorf("beside a withdrawn owner: got %d EVALSHA, %d of them whole; want 20, 0", got, looks)
	}

	// A handoff: one command to queue, one to release, one message.
	sv.Do(t, "CONFIG", "RESETSTAT")
	holder := "h"
	a.Hold("key", holder)
	for i := range 10 {
		next := "n" + strconv.Itoa(i)
		b.Wait("key", next)
		a.release(store.ReleaseRequest{Key: "key", Owner: holder})
		b.Heard(store.EventGrant, next)
		holder, a, b = next, b, a
	}
	if got := sv.calls(t, "evalsha"); got != 21 {
		t.Errorf("EVALSHA for 10 handoffs: got %d, want 21", got)
	}
	if got := sv.calls(t, "publish"); got != 10 {
		t.Errorf("PUBLISH for 10 handoffs: got %d, want 10", got)
	}
}

func TestWithoutPubSubWaitersAsk(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	sv.acquaint(t, long)
	for user, without := range map[string]string{"mute": " resetchannels -publish -subscribe -pubsub", "deaf": " resetchannels"} {
		var written kit.Journal
		st := sv.as(t, user, documentedRights+without).newStore(t, WithLogger(written.Logger(slog.LevelInfo)))
		a, b := join(t, st), join(t, st)
		q := redistest.Request("key-"+user, "a")
		q.NotifyQueued = true
		a.Want(q, store.Granted)
		b.Wait("key-"+user, "b2")
		for rank, owner := range []string{"b2", "c3"} {
			got := b.Wait("key-"+user, owner)
			if got.Recheck <= 0 || got.Recheck > time.Duration(rank+1)*50*time.Millisecond {
				t.Errorf("%s: Recheck at rank %d: got %v, want at most 50ms each", user, rank, got.Recheck)
			}
		}
		a.release(store.ReleaseRequest{Key: "key-" + user, Owner: "a"})
		b.Wait("key-"+user, "c3")
		b.Want(redistest.Request("key-"+user, "b2"), store.Granted)
		if _, err := a.session.Force(t.Context(), "key-"+user, 0); err != nil {
			t.Errorf("%s: Force: got %v, want no error", user, err)
		}
		b.Want(redistest.Request("key-"+user, "c3"), store.Granted)
		kit.Eventually(t, user+": a warning", func() bool { return strings.Contains(written.String(), "no usable pub-sub") })
		time.Sleep(500 * time.Millisecond) // the inboxes try again meanwhile
		if got := strings.Count(written.String(), "\n"); got != 1 {
			t.Errorf("%s: log: got %d lines, want one:\n%s", user, got, written.String())
		}
		for _, owner := range []string{"b2", "c3"} {
			if strings.Contains(written.String(), owner) {
				t.Errorf("%s: log: got an owner in it: %s", user, written.String())
			}
		}

		// Once it works, waiters say so by themselves.
		sv.Do(t, "ACL", "SETUSER", user, "+publish", "+pubsub", "+subscribe", "&"+sv.prefix+":c:*")
		b.release(store.ReleaseRequest{Key: "key-" + user, Owner: "c3"})
		a.Hold("key-"+user, "d4")
		b.waitForMessage("key-"+user, "e5")
		a.release(store.ReleaseRequest{Key: "key-" + user, Owner: "d4"})
		b.Heard(store.EventGrant, "e5")
	}
}

// A user without the right to count receivers still sends, and the grant stays.
func TestUnknownReceiversAreNotNone(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	sv.acquaint(t, long)
	st := sv.as(t, "incurious", strings.ReplaceAll(documentedRights, "+pubsub|numsub", "")).newStore(t)
	a, b := join(t, st), join(t, st)
	token := a.Hold("key", "a").Token
	b.Wait("key", "b")
	b.Wait("key", "c")
	sv.Pass(time.Millisecond)
	a.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: token}) // by release_fast.lua
	token = b.Heard(store.EventGrant, "b").Grant.Token
	b.releaseAgain(store.ReleaseRequest{Key: "key", Owner: "b", Token: token}) // by release.lua
	b.Heard(store.EventGrant, "c")
}

// documentedRights are those that the package comment lists.
const documentedRights = "+evalsha +eval +hello +ping +get +set +exists +del +unlink +pexpire +pttl +time +zadd +zcard +zcount +zrange +zrank +zrem" +
	" +zscore +hget +hmget +hset +hdel +hlen +publish +subscribe +pubsub|numsub +info|replication +info|server +info|memory"

func TestTheDocumentedRightsSuffice(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.as(t, "locker", documentedRights+rightsToList).store(t))
	c.Hold("key", "a")
	c.Wait("key", "b")
	c.Wait("key", "c")
	c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: 1 << 51, NotifyQueued: true})
	list(t, c, "")
	c.Inspect("key")
	c.release(store.ReleaseRequest{Key: "key", Owner: "c", Uncertain: true})
	again := redistest.Request("key", "d")
	c.release(store.ReleaseRequest{Key: "key", Owner: "a", Requeue: &again})
	c.Heard(store.EventGrant, "b")
	if _, err := c.session.Force(t.Context(), "key", 0); err != nil {
		t.Error(err)
	}
	c.Heard(store.EventGrant, "d")
	c.Heard(store.EventForced, "b")
	for _, limit := range []int32{2, 0} {
		if err := c.session.SetLimit(t.Context(), "permits", limit); err != nil {
			t.Error(err)
		}
		c.Want(permits("permits", "with-"+strconv.Itoa(int(limit)), 1, 2), store.Granted)
	}
	sv.nothingDenied(t)
}

// With the rights to ask at each connection what docs/security.md lists, the server denies nothing
// at all.
func TestNothingIsDeniedWhereAConnectionMayAsk(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	rights := documentedRights + " +cluster|slots +cluster|shards"
	// Redis 7.0 does not know it, so it refuses the right and logs nothing. Redis 6.2 knows
	// no subcommands: it takes a right to any, and logs what it denies.
	if sv.has(t, "client|setinfo") || !sv.has(t, "client|id") {
		rights += " +client|setinfo"
	}
	join(t, sv.as(t, "locker", rights).newStore(t, WithoutFailoverGrace())).Hold("key", "a")
	if got := sv.Do(t, "ACL", "LOG"); got != "[]" {
		t.Errorf("ACL LOG: got %s, want it empty", got)
	}
}

// known leaves out rights to commands that the server does not have.
func (sv *server) known(t *testing.T, rights []string) []string {
	t.Helper()
	return slices.DeleteFunc(rights, func(right string) bool {
		command, given := strings.CutPrefix(right, "+")
		command, _, _ = strings.Cut(command, "|")
		return given && command != "@all" && !sv.has(t, command)
	})
}

// has reports whether the server knows a command.
func (sv *server) has(t *testing.T, command string) bool {
	t.Helper()
	return sv.Do(t, "COMMAND", "INFO", command) != "[<nil>]"
}

// nothingDenied checks the server's list of what it has denied.
func (sv *server) nothingDenied(t *testing.T) {
	t.Helper()
	denied := sv.Do(t, "ACL", "LOG")
	// rueidis asks whether it is a cluster and introduces itself, and takes no
	// for an answer.
	for _, expected := range []string{"object:cluster", "object:client"} {
		denied = strings.ReplaceAll(denied, expected, "")
	}
	if strings.Contains(denied, "object:") {
		t.Errorf("ACL LOG: got %s, want nothing", denied)
	}
}

func TestAUserWithoutRightsIsDenied(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	for user, rights := range map[string]string{
		"elsewhere": "resetkeys ~other:* +@all", "scriptless": "+@all -evalsha -eval", "readonly": "+@all -set",
	} {
		c := join(t, sv.as(t, user, rights).newStore(t))
		if got := c.Acquire(redistest.Request("key", "a")).Err; !errors.Is(got, store.ErrDenied) {
			t.Errorf("%s: Acquire: got %v, want ErrDenied", user, got)
		}
	}
}

// A key that may not be read is not said to hold something foreign, which would
// send people looking there.
func TestWhatMayNotBeReadIsDenied(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	owner := join(t, sv.store(t))
	owner.Hold("key", "a")
	owner.Wait("key", "b")
	for command, calls := range map[string][]string{
		"get":   {"Acquire", "Release", "Force", "Inspect", "Renew"},
		"zcard": {"Acquire", "Release", "Force", "Inspect"},
		"hlen":  {"Acquire", "Release", "Force"},
		"hmget": {"Inspect"},
	} {
		s := join(t, sv.as(t, "all-but-"+command, "+@all -"+command).store(t)).session
		errs := map[string]error{
			// One that waits takes a shortcut, which does without some of these rights.
			"Acquire": s.Acquire(t.Context(), []store.AcquireRequest{redistest.Attempt("key", "x")})[0].Err,
			"Release": s.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "x"}})[0].Err,
			"Renew":   s.Renew(t.Context(), []store.RenewRequest{{Key: "key", Owner: "a", TTL: long}})[0].Err,
		}
		_, errs["Inspect"] = s.Inspect(t.Context(), "key")
		_, errs["Force"] = s.Force(t.Context(), "key", 0)
		for _, call := range calls {
			if !errors.Is(errs[call], store.ErrDenied) {
				t.Errorf("%s without %s: got %v, want ErrDenied", call, command, errs[call])
			}
		}
	}
}

func TestAReplicaIsUnreachable(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t))
	c.Hold("key", "a")
	sv.Do(t, "REPLICAOF", "127.0.0.1", "1")
	for name, err := range map[string]error{
		"Acquire":               c.Acquire(redistest.Request("free", "b")).Err,
		"Acquire by the holder": c.Acquire(redistest.Request("key", "a")).Err,
		"Renew":                 c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long}).Err,
		"Release":               c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a"}})[0].Err,
	} {
		if !errors.Is(err, store.ErrUnreachable) {
			t.Errorf("%s: got %v, want ErrUnreachable", name, err)
		}
	}
	sv.Do(t, "REPLICAOF", "NO", "ONE")
	c.releaseHeld(store.ReleaseRequest{Key: "key", Owner: "a"})
}

func TestAServerThatDiesAndComesBack(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.newStore(t, WithoutFailoverGrace()))
	c.Hold("key", "a")
	sv.own.Kill()
	kit.Eventually(t, "ErrUnreachable", func() bool {
		err := c.Acquire(redistest.Request("key", "b")).Err
		if !errors.Is(err, store.ErrUnreachable) && !errors.Is(err, store.ErrOutcomeUnknown) {
			t.Fatalf("Acquire: got %v, want ErrUnreachable or ErrOutcomeUnknown", err)
		}
		return errors.Is(err, store.ErrUnreachable)
	})
	sv.restart(t)
	// The inbox may take a moment to notice; meanwhile a waiter asks.
	kit.Eventually(t, "the key is there again", func() bool { return c.Acquire(redistest.Request("key", "c")).Status == store.Granted })
	c.Wait("key", "d")
	c.release(store.ReleaseRequest{Key: "key", Owner: "c"})
	kit.Eventually(t, "the waiter is granted the key", func() bool { return c.Acquire(redistest.Request("key", "d")).Status == store.Granted })
}

// Messages go on when the server has cut the subscription, and what was missed
// is asked for.
func TestASubscriptionThatIsCutComesBack(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	gaps := make(chan struct{}, 100)
	joined, err := st.Open("gapped", func(e store.Event) {
		if e.Kind == store.EventResync {
			gaps <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = joined.Close(context.Background()) })
	wait := func(what string) {
		t.Helper()
		select {
		case <-gaps:
		case <-time.After(20 * time.Second):
			t.Fatalf("got no EventResync %s, want one", what)
		}
	}
	wait("after the first subscription")
	sv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	wait("after the second subscription")
}
