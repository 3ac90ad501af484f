// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// Messages that a sharded inbox has missed concern the keys of its bucket only.
func TestSilenceOfAShardedInboxIsItsBuckets(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_CLUSTER_URL"))
	if !sv.has(t, "SSUBSCRIBE") {
		t.Skip("this server has no sharded pub-sub, which came with Redis 7")
	}
	heard := make(chan store.Event, 64)
	s, err := sv.store(t).Open("client-"+uuid.NewString(), func(e store.Event) { heard <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	if got := s.Acquire(context.Background(), []store.AcquireRequest{{Key: "key", Owner: "owner", TTL: time.Second}})[0]; got.Err != nil {
		t.Fatal(got.Err)
	}
	select {
	case e := <-heard:
		if !e.OneLane || e.Lane != s.Lane("key") {
			t.Errorf("got %+v, want it to be about lane %d", e, s.Lane("key"))
		}
	case <-time.After(time.Minute):
		t.Error("got no event, want one when the inbox is up")
	}
}

// The log says once in an outage that there is no usable pub-sub, for all clients together, and that the outage is
// over. The next outage is logged again.
func TestAnOutageOfPubSubIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		everything, nothing := func(string) bool { return true }, func(string) bool { return false }
		server := &wary{subscribers: make(map[*subscriber]struct{}), denied: everything}
		var written kit.Journal
		st := &Store{conn: &connection{Driver: server}, settings: settings{prefix: "test"}, log: asynclog.New(written.Logger(slog.LevelInfo))}
		join := func(id string) *session {
			s := &session{store: st, id: id, events: func(store.Event) {}}
			s.inbox(0)
			return s
		}
		leave := func(s *session) {
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		wants := func(when string, outages, ends int) {
			t.Helper()
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			text := written.String()
			begun, over := strings.Count(text, "level=WARN msg=\"redisstore: no usable pub-sub"), strings.Count(text, "pub-sub is usable again")
			if begun != outages || over != ends || strings.Count(text, "\n") != outages+ends {
				t.Errorf("%s: got %d warnings and %d ends, want %d and %d and nothing else:\n%s", when, begun, over, outages, ends, text)
			}
		}
		a, b := join("a"), join("b")
		wants("denied from the start", 1, 0)
		if !strings.Contains(written.String(), errDenied.Error()) {
			t.Errorf("log: got no reason:\n%s", written.String())
		}
		server.deny(func(channel string) bool { return strings.HasSuffix(channel, "b") })
		wants("allowed to one", 1, 0)
		server.deny(nothing)
		wants("allowed", 1, 1)
		server.deny(everything)
		wants("denied again", 2, 1)
		leave(a)
		wants("one has left", 2, 1)
		leave(b)
		wants("nobody knows whether it lasts", 2, 1)
		c := join("c")
		wants("denied to a later one", 3, 1)
		leave(c)
		c.silent(a.classic.Load().channel, errDenied)
		wants("a word after Close counts for nothing", 3, 1)
		st.log.Close()
	})
}
