// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// worked returns for how many seconds the server has had a processor.
func (sv *server) worked(t *testing.T) (seconds float64) {
	t.Helper()
	facts, err := sv.own.Facts(t.Context(), "INFO", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		s, err := strconv.ParseFloat(facts[name], 64)
		if err != nil {
			t.Fatal(err)
		}
		seconds += s
	}
	return seconds
}

// A client that minds no limit fills a key's queue. Others are told so at once,
// no call takes long, other keys notice nothing, and when the client has gone,
// the next release finds its way past everything that it has left.
func TestAFloodedQueue(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	st := sv.store(t)
	honest := join(t, st)
	holder := redistest.Request("key", "a")
	holder.TTL = time.Hour // a busy machine takes long for what follows
	token := honest.Want(holder, store.Granted).Token
	early := redistest.Request("key", "early")
	early.TTL, early.GrantTTL, early.WaiterTTL = time.Hour, time.Hour, time.Hour
	honest.Want(early, store.Waiting)

	const many = asynclock.DefaultQueueLimit
	flooder := join(t, sv.newStore(t)) // its connection ends with it
	flood := make([]store.AcquireRequest, many)
	for i := range flood {
		flood[i] = redistest.Request("key", "flood-"+strconv.Itoa(i))
		flood[i].QueueLimit = 0
		flood[i].WaiterTTL = 24 * time.Hour
	}
	for i, reply := range flooder.session.Acquire(t.Context(), flood) {
		if reply.Err != nil || reply.Status != store.Waiting {
			t.Fatalf("request %d: got %+v, want it waiting", i, reply)
		}
	}

	late := redistest.Request("key", "late")
	late.QueueLimit = many
	if got := honest.Want(late, store.Full); got.Waiters != many+1 {
		t.Errorf("Waiters: got %d, want %d", got.Waiters, many+1)
	}
	honest.Want(early, store.Waiting) // has its place already
	honest.Hold("other", "b")
	if got := len(honest.Inspect("key").Queue); got != shown {
		t.Errorf("waiters described: got %d, want %d", got, shown)
	}

	honest.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: token})
	grant := honest.Want(early, store.Granted)
	if err := flooder.session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, "nobody receives the flooder's messages", func() bool {
		return sv.receivers(t, flooder.session.classic.Load().channel) == 0
	})
	before := sv.worked(t)
	honest.release(store.ReleaseRequest{Key: "key", Owner: "early", Token: grant.Token})
	if work := sv.worked(t) - before; work > 2 { // usually it is a twentieth of that
		t.Errorf("a release past %d who can't be reached: %.3f s of work, want little", many, work)
	}
	honest.Want(late, store.Granted)
	if got := honest.Inspect("key").Waiters; got != 0 {
		t.Errorf("Waiters after the flood: got %d, want none", got)
	}
}
