// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// addUser makes a user with the rights that the package comment lists, for a registry key instead of
// shop. It returns the server as that user sees it.
func (sv *server) addUser(t *testing.T, registry string) *server {
	t.Helper()
	_, text, found := strings.Cut(kit.ReadFile(t, "store/springredis/doc.go"), "for the registry key shop:")
	text, _, ended := strings.Cut(text, "where servers before 8.4")
	rights := regexp.MustCompile(`[~&+]\S+`).FindAllString(text, -1)
	if !found || !ended || len(rights) < 20 {
		t.Fatalf("rights in the package comment: got %q", rights)
	}
	rights = slices.DeleteFunc(rights, func(right string) bool { return right == "+delex" })
	for i := range rights {
		rights[i] = strings.ReplaceAll(rights[i], "shop", registry)
	}
	words := []string{"ACL", "SETUSER", registry, "on", ">pw", "resetkeys", "resetchannels", "-@all", "+scan"}
	sv.Do(t, append(words, rights...)...)
	return &server{sv.as(registry), registry}
}

// as is the server as a user with password pw sees it.
func (sv *server) as(user string) *redistest.Server {
	other := *sv.Server
	other.Option.Username, other.Option.Password = user, "pw"
	return &other
}

// The package comment lists what a user needs, and nothing more is needed.
func TestTheRightsInThePackageCommentSuffice(t *testing.T) {
	t.Parallel()
	sv := ownServer(t).addUser(t, "shop")
	var log kit.Journal
	st := sv.store(t, WithLockType(PubSubLock), WithLogger(log.Logger(slog.LevelInfo)))
	c := join(t, st)
	first := c.Hold("key", "a")
	if got := c.Wait("key", "b").Recheck; got < 2*DefaultPollInterval {
		t.Errorf("Recheck: got %v, want messages counted on; the log says %s", got, log.String())
	}
	if err := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: first.Token + 1}); err != nil {
		t.Errorf("Renew: got %v, want no error", err)
	}
	if got := c.list(""); !slices.Equal(got, []string{"key"}) {
		t.Errorf("List: got %q, want the key", got)
	}
	if !c.release(store.ReleaseRequest{Key: "key", Owner: "a", Uncertain: true}).WasHeld {
		t.Error("Release: got WasHeld false, want true")
	}
	c.Heard(store.EventWake, "b")
	c.Hold("key", "b")
	if held, err := c.session.Force(t.Context(), "key", 0); !held || err != nil {
		t.Errorf("Force: got %v, %v; want true", held, err)
	}
	st.log.Close()
	if regexp.MustCompile(`level=(WARN|ERROR)`).MatchString(log.String()) {
		t.Errorf("log: got %q, want no complaint", log.String())
	}
	denials := sv.Do(t, "ACL", "LOG")
	for _, harmless := range []string{"delex", "client", "cluster"} { // tried, and what rueidis asks at first
		denials = strings.ReplaceAll(denials, "object:"+harmless, "")
	}
	if strings.Contains(denials, "object:") {
		t.Errorf("denied: got %s, want nothing that counts", denials)
	}
}

// The user of one registry can't touch another's locks, tokens and messages.
func TestTheUserOfAnotherRegistryIsKeptOut(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	bank, shop := sv.addUser(t, "bank"), sv.addUser(t, "shop")
	c := join(t, bank.store(t))
	c.Hold("account", "a")
	c.release(store.ReleaseRequest{Key: "account", Owner: "late", Uncertain: true}) // so that there is a set of the withdrawn
	lock := bank.lockKey("account")
	counter, gone := side(lock, "f"), side(lock, "x")
	for name, call := range map[string]func(c *client) error{
		"Acquire": func(c *client) error { return c.Acquire(redistest.Request("account", "b")).Err },
		"Inspect": func(c *client) error { _, err := c.session.Inspect(t.Context(), "account"); return err },
		"Force":   func(c *client) error { _, err := c.session.Force(t.Context(), "account", 0); return err },
	} {
		stranger := server{shop.Server, bank.registry}
		if err := call(join(t, stranger.store(t))); !errors.Is(err, store.ErrDenied) {
			t.Errorf("%s by the user of shop: got %v, want ErrDenied", name, err)
		}
	}
	option := shop.Option
	option.DisableCache = true // to which it has no right
	raw, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	const write = "return redis.call('SET', '%', '8999999999999999')"
	before := sv.Do(t, "GET", counter)
	for _, words := range [][]string{
		{"GET", lock},
		{"SET", lock, "x"},
		{"DEL", lock},
		{"UNLINK", lock},
		{"PEXPIRE", lock, "1"},
		{"GET", counter},
		{"SET", counter, "8999999999999999"},
		{"DEL", counter},
		{"PEXPIRE", counter, "1"},
		{"ZADD", gone, "9000000000000000", "a"},
		{"DEL", gone},
		{"EVAL", strings.ReplaceAll(write, "%", counter), "0"},
		{"EVAL", strings.ReplaceAll(write, "%", lock), "0"},
		{"PUBLISH", "bank-channel", lock},
		{"PUBLISH", "bank-channel:" + lock, lock},
	} {
		if _, err := redistest.Ask(raw, words...); err == nil || !strings.Contains(err.Error(), "permission") && !strings.Contains(err.Error(), "can't access") {
			t.Errorf("%q by the user of shop: got %v, want it denied", words, err)
		}
	}
	for _, pattern := range newNames("bank").patterns() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := raw.Receive(ctx, raw.B().Psubscribe().Pattern(pattern).Build(), func(rueidis.PubSubMessage) {})
		if cancel(); err == nil || !strings.Contains(err.Error(), "permission") {
			t.Errorf("PSUBSCRIBE %q by the user of shop: got %v, want it denied", pattern, err)
		}
	}
	if after := sv.Do(t, "GET", counter); after != before {
		t.Errorf("counter: got %s, want %s as before", after, before)
	}
	if !c.release(store.ReleaseRequest{Key: "account", Owner: "a"}).WasHeld {
		t.Error("Release by bank: got WasHeld false, want true")
	}
}

// A user with too few rights is told so: what it may not look at is not foreign. It is told before
// it has what it could not keep.
func TestWhatTheServerDenies(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	commands := []string{"get", "set", "del", "unlink", "pexpire", "pttl", "time", "zadd", "zcard", "zscore", "zremrangebyscore", "evalsha", "eval", "scan"}
	for _, denied := range commands {
		sv.Do(t, "ACL", "SETUSER", denied, "on", ">pw", "~*", "&*", "+@all", "-"+denied)
		c := join(t, (&server{sv.as(denied), sv.registry}).store(t))
		key := "key of who may not " + denied
		taken := c.Acquire(redistest.Request(key, "a"))
		errs := map[string]error{"Acquire": taken.Err}
		errs["Acquire again"] = c.Acquire(redistest.Request(key, "a")).Err
		errs["Acquire by another"] = c.Acquire(redistest.Request(key, "b")).Err
		errs["Renew"] = c.renew(store.RenewRequest{Key: key, Owner: "a", TTL: long})
		errs["Release"] = c.session.Release(t.Context(), []store.ReleaseRequest{{Key: key, Owner: "a", Uncertain: true}})[0].Err
		for _, err := range c.session.List(t.Context(), "") {
			errs["List"] = err
		}
		someDenied := false
		for verb, err := range errs {
			someDenied = someDenied || errors.Is(err, store.ErrDenied)
			if err != nil && !errors.Is(err, store.ErrDenied) && !errors.Is(err, store.ErrExpired) {
				t.Errorf("%s without %s: got %v, want ErrDenied if anything", verb, denied, err)
			}
		}
		if canDoWithout := denied == "unlink" || denied == "del"; someDenied == canDoWithout && denied != "eval" { // the server knows the scripts by then
			t.Errorf("without %s: got %v, want ErrDenied to be among it: %v", denied, errs, !canDoWithout)
		}
		if errs["Renew"] != nil && taken.Err == nil {
			t.Errorf("without %s: got a lease, and Renew %v; want it refused at once", denied, errs["Renew"])
		}
	}
}

// A Release that can't remember its owner frees the key, announces that, and fails.
func TestAReleaseThatMayNotRememberAnnounces(t *testing.T) {
	t.Parallel()
	sv := ownServer(t)
	sv.Do(t, "ACL", "SETUSER", "forgetful", "on", ">pw", "~*", "&*", "+@all", "-zadd")
	forgetful := server{sv.as("forgetful"), sv.registry}
	c, waiter := join(t, forgetful.store(t)), join(t, sv.store(t, WithLockType(PubSubLock)))
	c.Hold("key", "a")
	waiter.Wait("key", "b")
	got := c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a", Uncertain: true}})[0]
	if !errors.Is(got.Err, store.ErrDenied) {
		t.Errorf("Release: got %+v, want ErrDenied", got)
	}
	waiter.Heard(store.EventWake, "b")
	waiter.Hold("key", "b")
}
