// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

var errDenied = errors.New("NOPERM No permissions to access a channel")

// A wary server has channels that users may be denied.
type wary struct {
	redisdriver.Driver // nil: nothing else is asked

	mu          sync.Mutex
	denied      func(channel string) bool
	subscribers map[*subscriber]struct{}
}

type subscriber struct {
	channel string
	deliver func(string)
	end     context.CancelFunc
}

func (w *wary) Cluster() bool { return false }

func (w *wary) Eval(context.Context, redisdriver.Run) redisdriver.Result { return redisdriver.Result{} }

func (w *wary) Failure(err error) error { return err }

func (w *wary) Publish(_ context.Context, c redisdriver.Channel, payload string) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.subscribers {
		if s.channel == c.Name {
			s.deliver(payload)
		}
	}
	return 1, nil
}

func (w *wary) Receive(ctx context.Context, c redisdriver.Channel, confirmed func(), deliver func(string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &subscriber{c.Name, deliver, cancel}
	w.mu.Lock()
	denied := w.denied(c.Name)
	w.subscribers[s] = struct{}{}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.subscribers, s)
	}()
	if denied {
		return errDenied
	}
	confirmed()
	<-ctx.Done()
	return errDenied
}

// deny changes who is denied, and ends the subscriptions of those who are, as Redis does.
func (w *wary) deny(denied func(channel string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.denied = denied
	for s := range w.subscribers {
		if denied(s.channel) {
			s.end()
		}
	}
}

// told is what a session was told last of each key.
type told struct {
	mu   sync.Mutex
	last map[string]store.EventKind
}

func (t *told) event(e store.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[e.Key] = e.Kind
}

func (t *told) all(kind store.EventKind, keys ...string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !slices.ContainsFunc(keys, func(key string) bool { return t.last[key] != kind })
}

// Sessions that may not subscribe are told so. The log says it once in an outage, for all buckets and all their vain
// subscriptions together. After the end of the outage the next one is logged again.
func TestThatAnnouncementsDoNotComeThroughIsLoggedOnceInAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		everything, nothing := func(string) bool { return true }, func(string) bool { return false }
		server := &wary{subscribers: make(map[*subscriber]struct{}), denied: everything}
		var written kit.Journal
		st := &Store{conn: &connection{Driver: server}, settings: settings{prefix: "test"}, log: asynclog.New(written.Logger(slog.LevelInfo))}
		heard := &told{last: make(map[string]store.EventKind)}
		s := &session{store: st, events: heard.event}
		var keys []string
		buckets := make(map[int]bool)
		for i := 0; len(keys) < 3; i++ {
			if key := fmt.Sprint("key-", i); !buckets[bucketOf(key)] {
				buckets[bucketOf(key)] = true
				keys = append(keys, key)
			}
		}
		for _, key := range keys {
			if err := s.Observe(key, true); err != nil {
				t.Fatal(err)
			}
		}
		wants := func(when string, kind store.EventKind, outages, ends int) {
			t.Helper()
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if !heard.all(kind, keys...) {
				t.Errorf("%s: told %v, want %v for each", when, heard.last, kind)
			}
			text := written.String()
			if got := strings.Count(text, "level=WARN msg=\"redisstore: announcements don't come through"); got != outages {
				t.Errorf("%s: got %d warnings, want %d:\n%s", when, got, outages, text)
			}
			if got := strings.Count(text, "announcements come through again"); got != ends || strings.Count(text, "\n") != outages+ends {
				t.Errorf("%s: got %d ends of an outage, want %d and nothing else:\n%s", when, got, ends, text)
			}
		}
		wants("denied from the start", store.EventUnobserved, 1, 0)
		if !strings.Contains(written.String(), errDenied.Error()) {
			t.Errorf("log: got no reason:\n%s", written.String())
		}
		server.deny(nothing)
		wants("allowed", store.EventObserving, 1, 1)
		server.deny(everything)
		wants("denied again", store.EventUnobserved, 2, 1)

		// The outage lasts as long as one bucket has it that is observed.
		first := observers(st, bucketOf(keys[0])).classic.name
		server.deny(func(channel string) bool { return channel == first })
		keys = keys[1:]
		wants("allowed, but for one bucket", store.EventObserving, 2, 1)
		if err := s.Observe("key-0", false); err != nil {
			t.Fatal(err)
		}
		wants("allowed for all that are observed", store.EventObserving, 2, 2)
		server.deny(everything)
		wants("denied a third time", store.EventUnobserved, 3, 2)
		s.observesNoMore(func(string) bool { return true }) // nobody knows whether it lasts
		if err := s.Observe(keys[0], true); err != nil {
			t.Fatal(err)
		}
		keys = keys[:1]
		wants("denied as before", store.EventUnobserved, 3, 2)
		s.observesNoMore(func(string) bool { return true })
		if err := st.hub.awaitEnds(t.Context()); err != nil {
			t.Error(err)
		}
		st.log.Close()
	})
}

// A user of a real server without rights to any channel observes an election by looking.
func TestObserversLookWherePubSubIsDenied(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	sv.acquaint(t, long)
	var written kit.Journal
	st := sv.as(t, "deaf", documentedRights+" resetchannels").newStore(t, WithLogger(written.Logger(slog.LevelInfo)))
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	leaders, err := elect.Observe(ctx, newClient(t, st), "leader")
	if err != nil {
		t.Fatal(err)
	}
	term, err := (<-elect.Campaign(ctx, newClient(t, sv.store(t)), "leader")).Term()
	if err != nil {
		t.Fatal(err)
	}
	sees := func(value string) {
		t.Helper()
		if err := term.Proclaim(ctx, []byte(value)); err != nil {
			t.Fatal(err)
		}
		kit.Eventually(t, "the observer sees "+value, func() bool {
			select {
			case l := <-leaders:
				return l.Token == term.Token() && string(l.Value) == value
			default:
				return false
			}
		})
	}
	logs := func(outages, ends int) {
		t.Helper()
		kit.Eventually(t, fmt.Sprintf("the log has %d outages and %d ends", outages, ends), func() bool {
			text := written.String()
			return strings.Count(text, "announcements don't come through") == outages && strings.Count(text, "announcements come through again") == ends
		})
	}
	sees("by a look")
	logs(1, 0)
	sees("by another look")
	logs(1, 0) // it has subscribed in vain meanwhile
	sv.Do(t, "ACL", "SETUSER", "deaf", "&"+sv.prefix+":*")
	logs(1, 1)
	sees("by an announcement")
	sv.Do(t, "ACL", "SETUSER", "deaf", "resetchannels")
	logs(2, 1)
	sees("by a look again")
	if err := term.Resign(ctx); err != nil {
		t.Error(err)
	}
}
