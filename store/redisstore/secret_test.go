// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// ownerID is what an owner id looks like.
var ownerID = regexp.MustCompile(`[A-Za-z0-9_-]{22}\.[0-9a-f]{2}`)

// Whatever goes wrong, logs at their most talkative, errors and listings name no
// owner, who can end or prolong a holding, and no password.
func TestNothingShownIsSecret(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	user := sv.as(t, "locker", documentedRights+rightsToList)
	var shown kit.Journal
	show := func(what string, value any) {
		if _, err := fmt.Fprintf(&shown, "%s: %v %+v\n", what, value, value); err != nil {
			t.Fatal(err)
		}
	}
	logger := shown.Logger(slog.LevelDebug)
	var stores []*Store
	locks := func() *asynclock.Client {
		stores = append(stores, user.store(t, WithLogger(logger)))
		c, err := asynclock.New(stores[len(stores)-1], asynclock.WithLogger(logger), asynclock.WithTTL(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			defer cancel()
			show("close", c.Close(ctx)) // the server may be gone
		})
		return c
	}
	a, b := locks(), locks()
	lock := func(key string) *asynclock.Lease {
		l, err := a.Lock(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}

	held := lock("held")
	if record := sv.Do(t, "GET", sv.redisKey("held", 'l')); !ownerID.MatchString(record) {
		t.Fatalf("record: got %q, want an owner in it as this test expects them", record)
	}
	_, err := b.TryLock(t.Context(), "held")
	show("try", err)
	ctx, cancel := context.WithCancel(t.Context())
	pending := b.LockChan(ctx, "held")
	kit.Eventually(t, "a waiter", func() bool { return sv.Number(t, "ZCARD", sv.redisKey("held", 'q')) == 1 })
	info, err := a.Inspect(t.Context(), "held")
	show("inspect", fmt.Sprint(info, err))
	for info, err := range a.List(t.Context(), "") {
		show("list", fmt.Sprint(info, err))
	}
	cancel()
	_, err = (<-pending).Lease()
	show("canceled", err)

	// Somebody writes nonsense, and says nonsense.
	sv.Do(t, "SET", sv.redisKey("foreign", 'l'), "nonsense")
	_, err = a.Lock(t.Context(), "foreign")
	show("foreign", err)
	for channel := range strings.FieldsSeq(strings.Trim(sv.Do(t, "PUBSUB", "CHANNELS", sv.prefix+":*"), "[]")) {
		sv.Do(t, "PUBLISH", channel, "g 0123456789abcdefghijkl.00 nonsense")
	}
	taken := lock("taken")
	_, err = b.ForceUnlock(t.Context(), "taken", 0)
	show("force", err)
	<-taken.Done()
	show("taken", errors.Join(taken.Err(), taken.Unlock(t.Context())))

	// The server forgets, hangs up, denies, stops.
	stolen, gone, denied := lock("stolen"), lock("gone"), lock("denied")
	sv.Do(t, "SCRIPT", "FLUSH")
	sv.Do(t, "SET", sv.redisKey("stolen", 'l'), "5 another - - somebody")
	sv.Do(t, "DEL", sv.redisKey("gone", 'l'))
	show("stolen", stolen.Renew(t.Context(), time.Second))
	show("gone", gone.Unlock(t.Context()))
	sv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	sv.Do(t, "ACL", "SETUSER", "locker", "-evalsha", "-eval")
	show("denied", denied.Unlock(t.Context()))
	_, err = a.Lock(t.Context(), "denied")
	show("denied", err)
	sv.Do(t, "ACL", "DELUSER", "locker") // and hangs up
	_, err = b.TryLock(t.Context(), "unknown user")
	show("unknown user", err)
	<-held.Done()
	show("held", errors.Join(held.Err(), held.Unlock(t.Context())))
	_, err = Open(user.Option)
	show("open", err)

	for _, st := range stores {
		st.log.Close() // when all is written
	}
	text := shown.String()
	for line := range strings.Lines(text) {
		if ownerID.MatchString(line) {
			t.Errorf("got an owner in %q", line)
		}
		if strings.Contains(line, user.Option.Password) {
			t.Errorf("got a password in %q", line)
		}
	}
	for _, word := range []string{"held by", "foreign data", "ignored a message", "lease lost", "NOPERM", "WRONGPASS"} {
		if !strings.Contains(text, word) {
			t.Errorf("got no %q in what was shown, so it has not all been tried:\n%s", word, text)
		}
	}
}

// A server quotes the arguments of a command that it does not know, as one that
// has taken over may not.
func TestUnknownCommandsNameNoOwner(t *testing.T) {
	t.Parallel()
	sv := ownServer(t, "--rename-command", "EVALSHA", "")
	sv.prefix = "p" // so that what it quotes gets as far as the owner
	const owner = "the-secret-of-an-acquisition"
	c := join(t, sv.store(t))
	renewal := []store.RenewRequest{{Key: "k", Owner: owner, TTL: long}}
	err := c.session.Renew(t.Context(), renewal)[0].Err
	if err == nil || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("Renew: got %v, want to hear of the unknown command", err)
	}
	for _, err := range []error{
		err, c.Acquire(redistest.Request("k", owner)).Err,
		c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "k", Owner: owner}})[0].Err,
	} {
		for ; err != nil; err = errors.Unwrap(err) {
			if strings.Contains(err.Error(), owner[:6]) {
				t.Errorf("got an owner in %q", err)
			}
		}
	}
}

// readerRights reads from docs/security.md what whoever only looks is given.
func readerRights(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "ACL SETUSER reader ")
	text, _, _ = strings.Cut(text, "```")
	rights := regexp.MustCompile(`\+[a-z]+`).FindAllString(text, -1)
	if len(rights) == 0 {
		t.Fatal("docs/security.md has no user called reader")
	}
	return rights
}

// A user that only looks needs no right to change anything, and can't change anything.
func TestAReaderCanLookAndNothingElse(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	c := join(t, sv.store(t))
	c.Hold("key", "a")
	c.Wait("key", "b")
	before := sv.dump(t, "key")
	crowd{share: store.Share{Mode: store.Permits, Limit: 9}, members: 5, dead: 1, limits: 3, waiters: 3}.make(t, sv, "permits")
	reader := join(t, sv.as(t, "reader", "resetchannels "+strings.Join(readerRights(t), " ")).store(t))
	if info := reader.Inspect("permits"); info.Used != 4 || info.Waiters != 3 {
		t.Errorf("Inspect of permits: got %+v, want 4 permits out, and 3 who wait", info)
	}
	if _, err := reader.session.ReadNote(t.Context(), "permits"); err != nil {
		t.Errorf("ReadNote: got %v, want no error", err)
	}
	if info := reader.Inspect("key"); !info.Held || info.Waiters != 1 {
		t.Errorf("Inspect: got %+v, want the holder and the waiter", info)
	}
	if _, _, err := reader.session.Grace(t.Context(), "key"); !errors.Is(err, store.ErrDenied) {
		t.Errorf("Grace: got %v, want ErrDenied, as a reader can't see the server's history", err)
	}
	informed := join(t, sv.as(t, "informed", "resetchannels "+strings.Join(readerRights(t), " ")+" +info|replication +info|server").store(t))
	if _, _, err := informed.session.Grace(t.Context(), "key"); err != nil {
		t.Errorf("Grace with two rights more: got %v, want no error", err)
	}
	if got := list(t, reader, ""); len(got) != 2 {
		t.Errorf("List: got %v, want both keys", got)
	}
	_, forced := reader.session.Force(t.Context(), "key", 0)
	for what, err := range map[string]error{
		"Acquire of a free key":   reader.Acquire(redistest.Request("free", "r")).Err,
		"Acquire of the held key": reader.Acquire(redistest.Request("key", "r")).Err,
		"Acquire as the holder":   reader.Acquire(redistest.Request("key", "a")).Err,
		"Renew":                   reader.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long}).Err,
		"Release":                 reader.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a"}})[0].Err,
		"Release, uncertain":      reader.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "x", Uncertain: true}})[0].Err,
		"Force":                   forced,
	} {
		if err == nil {
			t.Errorf("%s: got no error", what)
		}
	}
	if after := sv.dump(t, "key"); after != before {
		t.Errorf("got %q changed to %q, want nothing changed", before, after)
	}
}
