// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/pubsub"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

const announced = "n order:%2542 1000000000000000 7 15000 9 a  holder some \x00 data "

func TestAnnouncementsAreReadAsScriptsWriteThem(t *testing.T) {
	key, a, ok := parseAnnouncement(announced)
	if !ok || key != "order:%42" || a.Token != 1e15 || a.Seq != 7 || a.Remaining != 15*time.Second ||
		a.Holder != "a  holder" || string(a.Data) != "some \x00 data " || a.Ended {
		t.Errorf("a note: got %q, %+v, %t", key, a, ok)
	}
	key, a, ok = parseAnnouncement("e key 5")
	if !ok || key != "key" || a.Token != 5 || !a.Ended {
		t.Errorf("an end: got %q, %+v, %t", key, a, ok)
	}
	if _, a, ok := parseAnnouncement("n key 1 1 0 0  "); !ok || a.Holder != "" || len(a.Data) != 0 {
		t.Errorf("an empty note of nobody in particular: got %+v, %t", a, ok)
	}
}

func TestMessagesThatNoScriptSendsAreNoAnnouncements(t *testing.T) {
	for _, payload := range []string{
		"", "e", "n", "x key 5", "e key", "e  5", "e key 5 ", "e key 0", "e key -1", "e key +1", "e key 9007199254740993",
		"e k{y 5", "e k%41 5", "e k%2 5", "e " + strings.Repeat("k", store.MaxKeyLen+1) + " 5",
		"n key 1 1 0", "n key 1 1 0 0", "n key 1 1 0 0 ", "n key 1 1 0 1 x", "n key 1 1 0 2 x y", "n key 1 1 0 40000 x y",
		"n key 0 1 0 0  ", "n key 1 0 0 0  ", "n key 1 1 -1 0  ", "n key 1 1 86400001 0  ", "n key 9007199254740993 1 0 0  ",
		"n key 1 1 0 0  " + strings.Repeat("x", store.MaxNoteLen+1),
	} {
		if key, a, ok := parseAnnouncement(payload); ok {
			t.Errorf("%q: got %q, %+v, want none", payload, key, a)
		}
	}
}

// Whatever comes is dropped or makes sense.
func FuzzAnnouncements(f *testing.F) {
	f.Add(announced)
	f.Add("e key 5")
	f.Add("n key 1 1 0 0  ")
	f.Add("n key 1 1 0 99 x")
	f.Fuzz(func(t *testing.T, payload string) {
		key, a, ok := parseAnnouncement(payload)
		if !ok {
			return
		}
		if a.Token < 1 || a.Remaining < 0 || a.Remaining > store.MaxTTL || len(a.Data) > store.MaxNoteLen || a.Ended == (a.Seq > 0) {
			t.Errorf("%q: got %+v, want it to make sense", payload, a)
		}
		again := fmt.Sprintf("n %s %d %d %d %d %s %s", appendEncoded(nil, key), a.Token, a.Seq, a.Remaining.Milliseconds(), len(a.Holder), a.Holder, a.Data)
		if a.Ended {
			again = fmt.Sprintf("e %s %d", appendEncoded(nil, key), a.Token)
		}
		_, b, _ := parseAnnouncement(again)
		if fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%q: got %+v, and %+v when it is written again", payload, a, b)
		}
	})
}

// A pubSub is a server of one channel, for any number of subscribers.
type pubSub struct {
	redisdriver.Driver // nil: nothing else is asked

	probes atomic.Int64
	deaf   atomic.Bool // delivers nothing

	mu          sync.Mutex
	subscribers map[*func(string)]struct{}
}

func (p *pubSub) Cluster() bool { return false }

func (p *pubSub) Eval(context.Context, redisdriver.Run) redisdriver.Result {
	return redisdriver.Result{}
}

func (p *pubSub) Publish(_ context.Context, _ redisdriver.Channel, payload string) (int64, error) {
	if strings.HasPrefix(payload, pubsub.ProbePrefix) {
		p.probes.Add(1)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.deaf.Load() {
		for deliver := range p.subscribers {
			(*deliver)(payload)
		}
	}
	return 1, nil
}

func (p *pubSub) Receive(ctx context.Context, _ redisdriver.Channel, confirmed func(), deliver func(string)) error {
	p.mu.Lock()
	p.subscribers[&deliver] = struct{}{}
	p.mu.Unlock()
	confirmed()
	<-ctx.Done()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.subscribers, &deliver)
	return ctx.Err()
}

// observing opens the channel for so many clients, and returns how many of them are live.
func (p *pubSub) observing(t *testing.T, clients int) (live func() int) {
	t.Helper()
	p.subscribers = make(map[*func(string)]struct{})
	var inboxes []*pubsub.Inbox
	for range clients {
		st := &Store{conn: &connection{Driver: p}, settings: settings{prefix: "test"}}
		inboxes = append(inboxes, pubsub.Open(observers(st, 1), pubsub.Handler{}))
	}
	t.Cleanup(func() {
		for _, in := range inboxes {
			_ = in.Close(context.Background())
		}
	})
	return func() (n int) {
		for _, in := range inboxes {
			if in.Live() {
				n++
			}
		}
		return n
	}
}

// A thousand clients that prove a channel by probes of their own would get a million of them every ten seconds.
func TestObserversOfAChannelShareItsProof(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := new(pubSub)
		live := p.observing(t, 100)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := p.probes.Load(); live() != 100 || n > 3 {
			t.Errorf("a second after 100 clients subscribed: got %d live by %d probes, want all by one, or a few at the same moment", live(), n)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := p.probes.Load(); live() != 100 || n > 300 {
			t.Errorf("after 10 minutes: got %d live by %d probes, want all by 300 at most", live(), n)
		}
	})
}

func TestADeafChannelOfObserversIsFoundOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := new(pubSub)
		live := p.observing(t, 10)
		time.Sleep(time.Minute)
		synctest.Wait()
		p.deaf.Store(true)
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if n := live(); n != 0 {
			t.Errorf("25 s after the last message: got %d that are live, want none", n)
		}
	})
}

// A subscription may end while a session begins to observe. The last that the session is told is true.
func TestASessionIsToldLastWhetherAnnouncementsComeThrough(t *testing.T) {
	st := &Store{conn: &connection{Driver: new(pubSub)}}
	b := &watched{keys: make(map[string][]*session), live: true}
	st.hub.buckets = map[int]*watched{bucketOf("key"): b}
	var told []store.EventKind
	s := &session{store: st}
	s.events = func(e store.Event) {
		if b.live {
			st.hears(b, redisdriver.ErrUnsharded) // before this call has had an effect
		}
		told = append(told, e.Kind)
	}
	if err := s.Observe("key", true); err != nil {
		t.Fatal(err)
	}
	if want := []store.EventKind{store.EventUnobserved, store.EventObserving, store.EventUnobserved}; !slices.Equal(told, want) {
		t.Errorf("told: got %v, want %v", told, want)
	}
}

// Several sessions of a store, and several keys of a bucket, share a subscription.
func TestSessionsOfAStoreShareASubscription(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		st := sv.store(t)
		first, second, writer := join(t, st), join(t, st), join(t, st)
		key, beside := "key", "key"
		for i := 0; beside == key; i++ {
			if other := fmt.Sprint("beside-", i); bucketOf(other) == bucketOf(key) {
				beside = other
			}
		}
		count := func() int {
			st.hub.mu.Lock()
			defer st.hub.mu.Unlock()
			return len(st.hub.buckets)
		}
		for _, err := range []error{
			first.session.Observe(key, true), second.session.Observe(key, true), second.session.Observe(beside, true), second.session.Observe(beside, false),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := count(); n != 1 {
			t.Errorf("subscriptions: got %d, want 1", n)
		}
		awaitEvent(t, first, store.EventObserving, key)
		if err := first.session.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		awaitEvent(t, second, store.EventObserving, key)
		for _, k := range []string{beside, key} {
			if err := writer.session.AnnounceEnd(t.Context(), k, 5); err != nil {
				t.Fatal(err)
			}
		}
		awaitEvent(t, second, store.EventAnnounced, key)
		if err := second.session.Observe(key, false); err != nil || count() != 0 {
			t.Errorf("after the last one: got error %v, and %d subscriptions, want none", err, count())
		}
	})
}

// awaitEvent waits for an event about the key, and for no announcement about another one.
func awaitEvent(t *testing.T, c *client, kind store.EventKind, key string) {
	t.Helper()
	for timeout := time.After(20 * time.Second); ; {
		select {
		case e := <-c.Events:
			if e.Kind == kind && e.Key == key {
				return
			}
			if e.Kind == store.EventAnnounced && e.Key != key {
				t.Errorf("got an announcement about %q, which is not observed", e.Key)
			}
		case <-timeout:
			t.Fatalf("got no event %d about %q, want one", kind, key)
		}
	}
}
