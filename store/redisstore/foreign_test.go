// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// Each verb meets each kind of damage: it says so, changes nothing and shows no
// owner. (What a verb does not look at it need not complain about.)
func TestForeignDataIsReportedAndLeftAlone(t *testing.T) {
	const key, owner, token = "key", "holder", int64(1e15)
	record := "1000000000000000 holder - - somebody"
	damages := []struct {
		name   string
		setup  [][]string
		spared string // verbs that don't look there
	}{
		{"record is a list", [][]string{{"RPUSH", "l", "x"}}, ""},
		{"record is a number that is no token", [][]string{{"SET", "l", "99999999999999999"}}, ""},
		{"record is a hyphen", [][]string{{"SET", "l", "-"}}, ""},
		{"record is a fraction", [][]string{{"SET", "l", "4.2"}}, ""},
		{"record is text", [][]string{{"SET", "l", "locked by the Java side"}}, ""},
		{"record is empty", [][]string{{"SET", "l", ""}}, ""},
		{"record's token is too large", [][]string{{"SET", "l", "99999999999999999999 holder - - x"}}, ""},
		{"record's token is no number", [][]string{{"SET", "l", "0x10 holder - - x"}}, ""},
		{"counter is a hash", [][]string{{"HSET", "f", "a", "b"}}, "renew inspect list"},
		{"counter is text", [][]string{{"SET", "f", "1e5"}}, "renew inspect list"},
		{"record's token is beyond doubles", [][]string{{"SET", "l", "9007199254740991 holder - - x"}}, ""},
		{"counter is beyond doubles", [][]string{{"SET", "f", "9007199254740993"}}, "renew inspect list"},
		{"counter is the last double", [][]string{{"SET", "f", "9007199254740991"}}, "renew inspect list"},
		{"counter is next to last", [][]string{{"SET", "f", "9007199254740990"}}, "renew inspect list"},
		{"counter is beyond doubles, key held", [][]string{{"SET", "l", record}, {"SET", "f", "9007199254740991"}}, "inspect list"},
		{"queue is a string", [][]string{{"SET", "l", record}, {"SET", "f", "1000000000000000"}, {"SET", "q", "x"}}, "renew"},
		{"queue is a string, key free", [][]string{{"SET", "q", "x"}}, "renew"},
		{"details are a string", [][]string{{"SET", "l", record}, {"ZADD", "q", "5", "waiter"}, {"SET", "w", "x"}}, "renew list"},
		{"withdrawn owners are a string", [][]string{{"SET", "l", record}, {"ZADD", "q", "5", "waiter"}, {"SET", "x", "x"}}, "renew inspect list"},
		{"entry with broken details", [][]string{{"ZADD", "q", "5", "waiter"}, {"HSET", "w", "waiter", "soon - 1000 - x"}}, "renew list downgrade"},
		{"group without numbers", [][]string{{"SET", "l", "=r 5"}}, ""},
		{"group's token is too large", [][]string{{"SET", "l", "=r 9900000000000000 5 0 0 0 0 0 -"}}, "renew inspect list"},
		{"members are a string", [][]string{{"SET", "l", "=r 5 5 0 0 0 0 0 -"}, {"SET", "s", "x"}, {"HSET", "h", "holder", "- - 0 0 5 -"}}, ""},
		{"details of members are a string", [][]string{{"SET", "l", "=r 5 5 0 0 0 0 0 -"}, {"ZADD", "s", "9000000000001", "holder"}, {"SET", "h", "x"}}, "list"},
		{"more members than details", [][]string{{"SET", "l", "=r 5 5 0 0 0 0 0 -"}, {"ZADD", "s", "9000000000001", "holder", "9000000000001", "other"}, {"HSET", "h", "holder", "- - 0 0 5 -"}}, "renew inspect list"},
		{"member with broken details", [][]string{{"SET", "l", "=r 5 5 0 0 0 0 0 -"}, {"ZADD", "s", "9000000000001", "holder"}, {"HSET", "h", "holder", "soon"}}, "acquire read permit try requeue force limit"},
		{"group of the layout before", [][]string{{"SET", "l", "=p 5 5 0 1 3 1"}, {"ZADD", "s", "9000000000001", "other"}, {"HSET", "h", "other", "- - 1 3 5 -"}}, ""},
		{"larger limits are missing", [][]string{{"SET", "l", "=p 5 5 0 1 3 1 1 -"}, {"ZADD", "s", "9000000000001", "other"}, {"HSET", "h", "other", "- - 1 3 5 -"}}, "renew inspect list"},
		{"larger limits are a string", [][]string{{"SET", "l", "=p 5 5 0 1 3 1 1 -"}, {"ZADD", "s", "9000000000001", "other"}, {"HSET", "h", "other", "- - 1 3 5 -"}, {"SET", "c", "x"}}, "renew inspect list"},
		{"stored limit is a hash", [][]string{{"SET", "l", "=p 5 5 0 1 3 1 0 -"}, {"ZADD", "s", "9000000000001", "other"}, {"HSET", "h", "other", "- - 1 3 5 -"}, {"HSET", "m", "a", "b"}}, "renew"},
		{"stored limit is text", [][]string{{"SET", "l", "=p 5 5 0 1 3 1 0 -"}, {"ZADD", "s", "9000000000001", "other"}, {"HSET", "h", "other", "- - 1 3 5 -"}, {"SET", "m", "many"}}, "renew"},
		{"stored limit is zero", [][]string{{"SET", "l", "=p 5 5 0 1 3 1 0 -"}, {"ZADD", "s", "9000000000001", "other"}, {"HSET", "h", "other", "- - 1 3 5 -"}, {"SET", "m", "0"}}, "renew"},
		{"stored limit is too large", [][]string{{"SET", "l", "=p 5 5 0 1 3 1 0 -"}, {"ZADD", "s", "9000000000001", "other"}, {"HSET", "h", "other", "- - 1 3 5 -"}, {"SET", "m", "1000001"}}, "renew"},
		{"holder's next in queue is broken", [][]string{{"SET", "l", record}, {"ZADD", "q", "5", "waiter"}, {"HSET", "w", "waiter", "-"}}, "renew acquire read permit try limit list"},
	}
	verbs := map[string]func(*client) error{
		"acquire": func(c *client) error { return c.Acquire(redistest.Request(key, "new")).Err },
		"try": func(c *client) error {
			q := redistest.Request(key, "new")
			q.Wait = false
			return c.Acquire(q).Err
		},
		"renew": func(c *client) error {
			return c.renew(store.RenewRequest{Key: key, Owner: owner, TTL: long, Token: token + 1}).Err
		},
		"release": func(c *client) error {
			return c.session.Release(context.Background(), []store.ReleaseRequest{{Key: key, Owner: owner, Token: token + 1, Uncertain: true}})[0].Err
		},
		"release at once": func(c *client) error {
			return c.session.Release(context.Background(), []store.ReleaseRequest{{Key: key, Owner: owner, Token: token, Clean: true}})[0].Err
		},
		"read":   func(c *client) error { return c.Acquire(read(key, "new")).Err },
		"permit": func(c *client) error { return c.Acquire(permits(key, "new", 1, 5)).Err },
		"downgrade": func(c *client) error {
			return c.session.Release(context.Background(), []store.ReleaseRequest{{Key: key, Owner: owner, Token: token, Rest: &store.Share{Mode: store.Shared}}})[0].Err
		},
		"requeue": func(c *client) error {
			again := redistest.Request(key, "new")
			got := c.session.Release(context.Background(), []store.ReleaseRequest{{Key: key, Owner: owner, Token: token, Requeue: &again}})[0]
			if got.Requeue != nil {
				return got.Requeue.Err
			}
			return got.Err
		},
		"force": func(c *client) error {
			_, err := c.session.Force(context.Background(), key, 0)
			return err
		},
		"limit": func(c *client) error {
			return c.session.SetLimit(context.Background(), key, 3)
		},
		"inspect": func(c *client) error {
			_, err := c.session.Inspect(context.Background(), key)
			return err
		},
		"list": func(c *client) error {
			for _, err := range c.session.List(context.Background(), key) {
				return err
			}
			return nil
		},
	}
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		c.Hold("another key", "a") // the store learns that miniredis hides its history; before that no shortcut grants
		for _, damage := range damages {
			for name, verb := range verbs {
				for _, kind := range []byte(lockKinds + shareKinds) {
					sv.Do(t, "DEL", sv.redisKey(key, kind))
				}
				for _, command := range damage.setup {
					command = append([]string(nil), command...)
					command[1] = sv.redisKey(key, command[1][0])
					sv.Do(t, command...)
				}
				before := sv.dump(t, key)
				err := verb(c)
				if after := sv.dump(t, key); err != nil && after != before {
					t.Errorf("%s, %s: changed %q to %q, want nothing changed", damage.name, name, before, after)
				}
				switch {
				case errors.Is(err, store.ErrForeignData) && !errors.Is(err, store.ErrOutcomeUnknown):
					for _, secret := range []string{"holder", "waiter", "new", "script", "user_script"} {
						if strings.Contains(strings.TrimPrefix(err.Error(), store.ErrForeignData.Error()), secret) {
							t.Errorf("%s, %s: error %q, want no %q in it", damage.name, name, err, secret)
						}
					}
				case !strings.Contains(damage.spared, name) && !harmless(damage.setup, name):
					t.Errorf("%s, %s: got error %v, want ErrForeignData", damage.name, name, err)
				case err != nil && !errors.Is(err, store.ErrLost):
					t.Errorf("%s, %s: got error %v, want ErrForeignData or none", damage.name, name, err)
				}
			}
		}
	})
}

// Details can be lost alone, where a server evicts keys. A waiter without them
// is taken for dead, and comes back by its ticket if it is not.
func TestWaitersWithoutDetailsAreDead(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		newcomer := redistest.Request("", "newcomer")
		newcomer.QueueLimit = 2
		for name, pass := range map[string]func(key string, token int64){
			"release": func(key string, token int64) {
				c.release(store.ReleaseRequest{Key: key, Owner: "a", Token: token})
			},
			"uncertain release": func(key string, token int64) {
				c.release(store.ReleaseRequest{Key: key, Owner: "a", Token: token, Uncertain: true})
			},
			"force": func(key string, _ int64) {
				c.force(key)
			},
			"expiry": func(key string, _ int64) { sv.Do(t, "DEL", sv.redisKey(key, 'l')) },
		} {
			for _, lost := range []string{"one", "all"} {
				key := name + ", " + lost
				token := c.Hold(key, "a").Token
				b := redistest.Request(key, "b")
				b.Ticket = c.Wait(key, "b").Ticket
				c.Wait(key, "d")
				sv.Do(t, map[string][]string{
					"one": {"HDEL", sv.redisKey(key, 'w'), "b"},
					"all": {"DEL", sv.redisKey(key, 'w')},
				}[lost]...)
				left := map[string]int{"one": 1, "all": 0}[lost]
				if info := c.Inspect(key); info.Waiters != left || len(info.Queue) != left {
					t.Errorf("%s: Inspect: got %+v, want %d waiters, all of them described", key, info, left)
				}
				newcomer.Key = key
				sv.Pass(time.Millisecond)
				pass(key, token)
				c.Want(newcomer, map[string]store.AcquireStatus{"one": store.Waiting, "all": store.Granted}[lost])
				if got := c.Want(b, store.Waiting); got.Rank != 0 {
					t.Errorf("%s: rank of one that comes back: got %d, want 0", key, got.Rank)
				}
				if got, want := c.Inspect(key).Holder, map[string]string{"one": "d at home", "all": "newcomer at home"}[lost]; got != want {
					t.Errorf("%s: holder: got %q, want %q", key, got, want)
				}
			}
		}

		c.Hold("full", "a")
		c.Wait("full", "b")
		c.Wait("full", "d")
		sv.Do(t, "HDEL", sv.redisKey("full", 'w'), "d")
		newcomer.Key = "full"
		if got := c.Want(newcomer, store.Waiting); got.Rank != 1 {
			t.Errorf("rank in a queue full of the dead: got %d, want 1", got.Rank)
		}
	})
}

// harmless says whether a verb has no reason to look at the damage: it releases,
// renews or takes by force what nobody holds.
func harmless(setup [][]string, verb string) bool {
	for _, command := range setup {
		if command[1] == "l" {
			return false
		}
	}
	return verb == "renew" || verb == "force" || verb == "release" || verb == "release at once"
}

// dump is all that a lock has in Redis.
func (sv *server) dump(t *testing.T, key string) string {
	t.Helper()
	var all []string
	for _, kind := range []byte(lockKinds + shareKinds) {
		name := sv.redisKey(key, kind)
		var content string
		switch sv.Do(t, "TYPE", name) {
		case "string":
			content = sv.Do(t, "GET", name)
		case "list":
			content = sv.Do(t, "LRANGE", name, "0", "-1")
		case "hash":
			content = sv.Do(t, "HGETALL", name)
		case "zset":
			content = sv.Do(t, "ZRANGE", name, "0", "-1", "WITHSCORES")
		}
		all = append(all, string(kind)+"="+content)
	}
	return strings.Join(all, " ")
}
