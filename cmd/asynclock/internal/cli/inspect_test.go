// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// newClient returns a client of the server.
func (p place) newClient(t *testing.T) *asynclock.Client {
	t.Helper()
	server, err := rueidis.ParseURL(p.url)
	if err != nil {
		t.Fatal(err)
	}
	store, err := redisstore.Open(server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	client, err := asynclock.New(store, asynclock.WithDescription("a test"), asynclock.WithTTL(patience))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(t.Context()) }) // that context has ended: leases are left as they are
	return client
}

// hold takes keys and returns their leases.
func (p place) hold(t *testing.T, keys ...string) []*asynclock.Lease {
	t.Helper()
	client := p.newClient(t)
	var leases []*asynclock.Lease
	for _, key := range keys {
		lease, err := client.Lock(t.Context(), key) // which asks again if there is no answer within a second
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, lease)
	}
	return leases
}

// object parses a JSON object and checks that it has just these fields.
func object(t *testing.T, text string, fields ...string) map[string]any {
	t.Helper()
	var got map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&got); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	for _, field := range fields {
		if _, ok := got[field]; !ok {
			t.Errorf("got %s, want field %s", text, field)
		}
	}
	if len(got) != len(fields) {
		t.Errorf("got %s, want the fields %v only", text, fields)
	}
	return got
}

// TestLsSaysThatPrefixIsAnotherName: --prefix looks like what ls takes as an argument.
func TestLsSaysThatPrefixIsAnotherName(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "orders/42")
	got := redis.run(t, "ls", "--prefix", "orders")
	got.want(t, 0, `no locks under the name "orders", which --prefix gives; keys that begin so: asynclock ls orders`)
	if !strings.HasPrefix(got.stdout, "KEY") {
		t.Errorf("got stdout %q, want the head of the table", got.stdout)
	}
	redis.run(t, "ls", "none").want(t, 0)
	redis.run(t, "ls", "--prefix", "asynclock").want(t, 0)
}

func TestInspect(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	lease := redis.hold(t, "orders/42")[0]
	waiting := redis.newClient(t).LockChan(t.Context(), "orders/42")
	fields := []string{
		"key", "held", "holder", "token", "remaining_ms", "waiters", "mode", "used", "limit",
		"stored_limit", "holders", "queue",
	}
	var got map[string]any
	kit.Eventually(t, "one waiter", func() bool {
		r := redis.run(t, "inspect", "--json", "orders/42")
		r.want(t, 0)
		got = object(t, r.stdout, fields...)
		return got["waiters"] == json.Number("1")
	})
	if got["key"] != "orders/42" || got["held"] != true || got["holder"] != "a test" {
		t.Errorf("got %v, want the key as held by a test", got)
	}
	if token, _ := got["token"].(json.Number).Int64(); token != lease.Token() {
		t.Errorf("got token %v, want %d", got["token"], lease.Token())
	}
	if ms, _ := got["remaining_ms"].(json.Number).Int64(); ms <= 0 || ms > patience.Milliseconds() {
		t.Errorf("got %v ms left, want some of %v", got["remaining_ms"], patience)
	}
	queue, _ := got["queue"].([]any)
	if len(queue) != 1 {
		t.Fatalf("got queue %v, want one waiter", got["queue"])
	}
	waiter, _ := queue[0].(map[string]any)
	if _, ok := waiter["age_ms"].(json.Number); !ok || waiter["holder"] != "a test" || len(waiter) != 2 {
		t.Errorf("got waiter %v, want its holder and age_ms", waiter)
	}
	r := redis.run(t, "inspect", "orders/42")
	for _, text := range []string{"key       orders/42\n", "holder    a test\n", "waiters   1\n", "1.      a test, for "} {
		if !strings.Contains(r.stdout, text) {
			t.Errorf("got %q, want it to contain %q", r.stdout, text)
		}
	}

	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, err := (<-waiting).Lease()
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	r = redis.run(t, "inspect", "--json", "orders/42")
	r.want(t, 0)
	if got := object(t, r.stdout, fields...); got["held"] != false || got["holder"] != "" {
		t.Errorf("got %s, want a key that nobody holds", r.stdout)
	}
	r = redis.run(t, "inspect", "orders/42")
	if want := "key       orders/42\nholder    -\ntoken     -\nTTL left  -\nwaiters   0\n"; r.stdout != want {
		t.Errorf("got %q, want %q", r.stdout, want)
	}
}

func TestLs(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	if got := redis.run(t, "ls", "--json"); got.code != 0 || got.stdout != "" {
		t.Errorf("got %+v of an empty server, want nothing", got)
	}
	redis.hold(t, "orders/2", "orders/1", "report", "two words\n")
	got := redis.run(t, "ls", "--json")
	got.want(t, 0)
	var keys []any
	for line := range strings.Lines(got.stdout) {
		info := object(t, line, "key", "held", "holder", "token", "remaining_ms", "waiters", "mode", "used", "limit")
		keys = append(keys, info["key"])
	}
	if len(keys) != 4 || keys[0] != "orders/1" || keys[1] != "orders/2" || keys[2] != "report" || keys[3] != "two words\n" {
		t.Errorf("got keys %q, want all of them, sorted", keys)
	}
	got = redis.run(t, "ls", "orders/")
	got.want(t, 0)
	lines := strings.Split(got.stdout, "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "KEY       HOLDER  TOKEN") ||
		!strings.HasPrefix(lines[1], "orders/1  a test  1") || !strings.HasPrefix(lines[2], "orders/2  a test  1") {
		t.Errorf("got %q, want a table of two", got.stdout)
	}
	for _, key := range redis.Keys() {
		if strings.HasSuffix(key, ":report:l") {
			_ = redis.Set(key, "foreign")
		}
	}
	got = redis.run(t, "ls", "--json")
	got.want(t, 65, `list "report": foreign data under the key`)
	if n := strings.Count(got.stdout, "\n"); n != 3 {
		t.Errorf("got %q beside a foreign key, want the other three", got.stdout)
	}
	for _, key := range redis.Keys() {
		if value, err := redis.Get(key); err == nil {
			_ = redis.Set(key, value) // which ends the TTL
		}
	}
	if got := redis.run(t, "ls", "two"); !strings.Contains(got.stdout, " none ") {
		t.Errorf("got %q, want the key without a TTL", got.stdout)
	}
	if got := redis.run(t, "ls", "--json", "two"); !strings.Contains(got.stdout, `"remaining_ms":-1,`) {
		t.Errorf("got %q, want -1 for a key without a TTL", got.stdout)
	}
	if got := redis.run(t, "ls", "two"); !strings.Contains(got.stdout, `"two words\n"`) {
		t.Errorf("got %q, want the key quoted", got.stdout)
	}
}

// TestOwnersStaySecret: nothing that the command prints of a lock, however much is
// asked for, would let its reader end it.
func TestOwnersStaySecret(t *testing.T) {
	t.Parallel()
	owner := regexp.MustCompile(`[A-Za-z0-9_-]{22}\.[0-9a-f]{2}`)
	server := startRedis(t)
	server.hold(t, "k")
	server.newClient(t).LockChan(t.Context(), "k")
	kit.Eventually(t, "one waiter", func() bool { return strings.Contains(server.run(t, "inspect", "k").stdout, "waiters   1") })
	var record string
	for _, key := range server.Keys() {
		if strings.HasSuffix(key, ":l") {
			record, _ = server.Get(key)
		}
	}
	if !owner.MatchString(record) {
		t.Fatalf("got record %q, want an owner in it as this test expects them", record)
	}
	for _, args := range []string{
		"-v ls", "-v ls --json", "-v inspect k", "-v inspect --json k", "-v run k --wait 0 -- true", "-v run k --wait 10ms -- true",
		"-v wait k --timeout 0", "-v note k", "-v note k --json", "-v hold k -n",
		"-v unlock --force --token 0 k", "-v unlock --force --token 0 --json k",
	} {
		got := server.run(t, strings.Fields(args)...)
		if text := got.stdout + got.stderr; text == "" || owner.MatchString(text) {
			t.Errorf("%s: got %q, want something, and no owner in it", args, text)
		}
	}
}

// TestUnlockIsAboutOneHolder: unlock with the token that inspect shows takes the key from that
// holder only, however often it is repeated.
func TestUnlockIsAboutOneHolder(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	first := redis.hold(t, "k")[0]
	token := strconv.FormatInt(first.Token(), 10)
	if got := redis.run(t, "inspect", "k"); !strings.Contains(got.stdout, "token     "+token) {
		t.Errorf("inspect: got %q, want token %s", got.stdout, token)
	}
	redis.run(t, "unlock", "--force", "--token", token, "k").want(t, 0)
	next := redis.hold(t, "k")[0]
	got := redis.run(t, "unlock", "--force", "--token", token, "--json", "k")
	got.want(t, 75, `"k" is held by a test (token `+strconv.FormatInt(next.Token(), 10), "not with token "+token+"; nothing was taken")
	if got.stdout != "" {
		t.Errorf("got stdout %q, want none", got.stdout)
	}
	if !next.Valid(0) {
		t.Errorf("the next lease: got %v, want it valid", next.Err())
	}
}

func TestUnlockByForce(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	lease := redis.hold(t, "k")[0]
	got := redis.run(t, "unlock", "--force", "--token", "0", "--json", "k")
	got.want(t, 0)
	if want := `{"key":"k","unlocked":true}` + "\n"; got.stdout != want {
		t.Errorf("got %q, want %q", got.stdout, want)
	}
	select {
	case <-lease.Done():
		if !errors.Is(lease.Err(), asynclock.ErrForced) {
			t.Errorf("got %v, want %v", lease.Err(), asynclock.ErrForced)
		}
	case <-time.After(patience):
		t.Error("the lease did not end")
	}
	got = redis.run(t, "unlock", "--force", "--token", "0", "k")
	got.want(t, 0)
	if want := "k: nobody held it\n"; got.stdout != want {
		t.Errorf("got %q, want %q", got.stdout, want)
	}
	redis.hold(t, "k")
	if got := redis.run(t, "unlock", "k", "--force", "--token", "0"); got.stdout != "k: taken from its holder\n" {
		t.Errorf("got %q, want it to say so", got.stdout)
	}
}
