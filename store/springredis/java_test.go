// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

func TestAJavaHolderIsRespected(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c, j := join(t, sv.store(t)), newJava(sv)
		j.hold(t, "key", long)
		held := c.Want(redistest.Attempt("key", "a"), store.Held)
		if want := "Spring RedisLockRegistry " + j.id[:8] + "…"; held.Holder != want || held.HolderToken != 0 {
			t.Errorf("Held: got holder %q and token %d, want %q and none", held.Holder, held.HolderToken, want)
		}
		if held.Remaining <= 0 || held.Remaining > long {
			t.Errorf("Remaining: got %v, want at most %v", held.Remaining, long)
		}
		if got := c.Wait("key", "a"); got.Remaining <= 0 || got.Remaining > long {
			t.Errorf("Remaining of a waiter: got %v, want at most %v", got.Remaining, long)
		}
		if err := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: time.Hour}); !errors.Is(err, store.ErrStolen) {
			t.Errorf("Renew: got %v, want ErrStolen", err)
		}
		if c.release(store.ReleaseRequest{Key: "key", Owner: "a", Uncertain: true}).WasHeld {
			t.Error("Release: got WasHeld, want not")
		}
		if got := sv.Do(t, "GET", sv.lockKey("key")); got != j.id {
			t.Errorf("value after all that: got %q, want Java's %q", got, j.id)
		}
		if got := c.list(""); !slices.Equal(got, []string{"key"}) {
			t.Errorf("List: got %q, want the key", got)
		}
		j.release(t, "key")
		c.Hold("key", "b")
	})
}

// Java finds a string with a TTL that is no registry's id and differs each time.
func TestWhatJavaFinds(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		form := regexp.MustCompile(`^asynclock [1-9][0-9]{15} [t-] (a|b) (a|b) at home$`)
		var values []string
		for _, owner := range []string{"a", "b"} {
			c.Hold("key", owner)
			value := sv.Do(t, "GET", sv.lockKey("key"))
			if !form.MatchString(value) {
				t.Errorf("value: got %q, want it like %v", value, form)
			}
			if ttl := sv.Number(t, "PTTL", sv.lockKey("key")); ttl <= 0 || ttl > long.Milliseconds() {
				t.Errorf("PTTL: got %d, want at most %d", ttl, long.Milliseconds())
			}
			values = append(values, value)
			c.release(store.ReleaseRequest{Key: "key", Owner: owner})
		}
		if values[0] == values[1] {
			t.Errorf("values: got %q twice, want another for each acquisition", values[0])
		}
	})
}

func TestTokensRiseThroughTenuresOfJava(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c, j := join(t, sv.store(t)), newJava(sv)
		first := c.Hold("key", "a").Token
		used := first + int64(time.Hour/time.Microsecond) // ahead of the clock
		c.release(store.ReleaseRequest{Key: "key", Owner: "a", Token: used})
		j.hold(t, "key", long)
		if info := c.Inspect("key"); info.Token != 0 {
			t.Errorf("Token in a tenure of Java: got %d, want none", info.Token)
		}
		j.release(t, "key")
		if got := c.Hold("key", "b").Token; got <= used {
			t.Errorf("token after Java: got %d, want more than %d of before", got, used)
		}
		if ttl := sv.Number(t, "PTTL", side(sv.lockKey("key"), "f")); ttl <= 0 {
			t.Errorf("PTTL of the counter: got %d, want one", ttl)
		}
	})
}

// Without the counter, which may be evicted or expire, the clock makes tokens
// rise.
func TestTokensRiseWithoutTheCounter(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		first := c.Hold("key", "a").Token
		sv.Do(t, "DEL", sv.lockKey("key"), side(sv.lockKey("key"), "f"))
		sv.Pass(time.Millisecond)
		if got := c.Hold("key", "b"); got.Token <= first || !got.TokensFollowClock {
			t.Errorf("token after the loss of everything: got %+v, want more than %d, by the clock", got.Grant, first)
		}
	})
}

// Java blocks for ever on a value without a TTL, and so do we.
func TestAValueWithoutTTLIsAHolder(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		for _, value := range []string{"somebody's data", "", "asynclock", "asynclock 1 t", "asynclock 99999999999999999999 t a b", "asynclock x t a b"} {
			sv.Do(t, "SET", sv.lockKey("key"), value)
			got := c.Want(redistest.Attempt("key", "a"), store.Held)
			if got.Holder != "another program" || got.Remaining >= 0 {
				t.Errorf("Acquire of what holds %q: got %+v, want another program's without an end", value, got)
			}
			for _, info := range c.shown("key") {
				if !info.Held || info.Remaining >= 0 {
					t.Errorf("Inspect and List of what holds %q: got %+v, want it held without an end", value, info)
				}
			}
			if err := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long}); !errors.Is(err, store.ErrStolen) {
				t.Errorf("Renew of what holds %q: got %v, want ErrStolen", value, err)
			}
			if got := sv.Number(t, "PTTL", sv.lockKey("key")); got != -1 {
				t.Errorf("PTTL: got %d, want none as before", got)
			}
			if held, err := c.session.Force(t.Context(), "key", 0); !held || err != nil {
				t.Errorf("Force: got %v, %v; want true", held, err)
			}
		}
	})
}

// centuries is about the longest TTL that miniredis takes, in ms. Redis takes a million times as much.
const centuries = "9200000000000"

// A registry may have any TTL, as new RedisLockRegistry(cf, "shop", Long.MAX_VALUE / 1000) has. It
// troubles neither the requests for its key nor a List.
func TestALockOfJavaForCenturies(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c, j := join(t, sv.store(t)), newJava(sv)
		for _, key := range []string{"a", "key", "z"} {
			j.hold(t, key, long)
		}
		sv.Do(t, "PEXPIRE", sv.lockKey("key"), centuries)
		for _, q := range []store.AcquireRequest{redistest.Attempt("key", "a"), redistest.Request("key", "b")} {
			if got := c.Acquire(q); got.Err != nil || got.Remaining < 290*365*24*time.Hour {
				t.Errorf("Acquire: got %+v, want the key held for centuries", got)
			}
		}
		for _, info := range c.shown("key") {
			if !info.Held || info.Remaining < 290*365*24*time.Hour {
				t.Errorf("Inspect and List: got %+v, want the key held for centuries", info)
			}
		}
		if got := c.list(""); len(got) != 3 {
			t.Errorf("List: got %q, want all three", got)
		}
		if held, err := c.session.Force(t.Context(), "key", 0); !held || err != nil {
			t.Errorf("Force: got %v, %v; want true", held, err)
		}
		c.Hold("key", "b")
	})
}

// Somebody has changed the TTL of a lock of ours. The next token is one that every client takes.
func TestForceOfALeaseWithAnotherTTL(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		for name, change := range map[string][]string{"none": {"PERSIST", "KEY"}, "centuries": {"PEXPIRE", "KEY", centuries}} {
			first := c.Hold(name, "a").Token
			change[1] = sv.lockKey(name)
			sv.Do(t, change...)
			if held, err := c.session.Force(t.Context(), name, first); !held || err != nil {
				t.Fatalf("Force with TTL %s: got %v, %v; want true", name, held, err)
			}
			got, day := c.Hold(name, "b").Token-first, store.MaxTTL.Microseconds()
			if got < day || got > day+time.Minute.Microseconds() {
				t.Errorf("token after Force with TTL %s: got %d more, want those of a day", name, got)
			}
		}
	})
}

// Force makes the next token larger than any that the old holder may use before
// it hears of it.
func TestForceLeavesRoomForTheOldHolder(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		first := c.Hold("key", "a").Token
		if held, err := c.session.Force(t.Context(), "key", 0); !held || err != nil {
			t.Fatalf("Force: got %v, %v; want true", held, err)
		}
		if got, want := c.Hold("key", "b").Token, first+int64((long-time.Second)/time.Microsecond); got < want {
			t.Errorf("token after Force: got %d, want at least %d", got, want)
		}
	})
}

// A holder in Java has no token, so that only token 0 takes the key from it.
func TestForceIsAboutOneHolding(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		ours := c.Hold("key", "a").Token
		if held, err := c.session.Force(t.Context(), "key", ours); !held || err != nil {
			t.Errorf("Force about the holder's token: got %v, %v; want true", held, err)
		}
		sv.Do(t, "SET", sv.lockKey("key"), "of Java", "PX", "60000")
		var other *store.OtherHolderError
		held, err := c.session.Force(t.Context(), "key", ours)
		if !errors.As(err, &other) || held || other.Info.Token != 0 || other.Info.Holder != "another program" || other.Info.Remaining <= 0 {
			t.Errorf("Force of Java's key about a token: got %v, %v; want it refused", held, err)
		}
		if got := sv.Number(t, "PTTL", sv.lockKey("key")); got <= 0 {
			t.Errorf("PTTL after a Force that was refused: got %d, want Java's value as before", got)
		}
		if held, err := c.session.Force(t.Context(), "key", 0); !held || err != nil {
			t.Errorf("Force of Java's key about token 0: got %v, %v; want true", held, err)
		}
	})
}

// Other types than a string are no lock of anybody.
func TestForeignTypesAreReportedAndLeftAlone(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		lock := sv.lockKey("key")
		write := [][]string{{"RPUSH", "LOCK", "x"}, {"HSET", "LOCK", "a", "b"}, {"SADD", "LOCK", "x"}}
		for _, command := range write {
			command[1] = lock
			sv.Do(t, command...)
			errs := map[string]error{
				"Acquire": c.Acquire(redistest.Request("key", "a")).Err,
				"Renew":   c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long}),
				"Release": c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a", Uncertain: true}})[0].Err,
			}
			_, errs["Inspect"] = c.session.Inspect(t.Context(), "key")
			_, errs["Force"] = c.session.Force(t.Context(), "key", 0)
			for verb, err := range errs {
				if !errors.Is(err, store.ErrForeignData) {
					t.Errorf("%s of a %s: got %v, want ErrForeignData", verb, command[0], err)
				}
			}
			if got := c.list(""); len(got) != 0 {
				t.Errorf("List: got %q, want nothing", got)
			}
			if got := sv.Number(t, "DEL", lock); got != 1 {
				t.Error("it is gone, want it left alone")
			}
		}
	})
}

func TestForeignSideKeysAreReportedAndLeftAlone(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c := join(t, sv.store(t))
		lock := sv.lockKey("key")
		counter, gone := side(lock, "f"), side(lock, "x")
		for _, value := range []string{"not a number", "", "-1", "1.5", "99999999999999999999", "9000000000000000"} {
			sv.Do(t, "SET", counter, value)
			if got := c.Acquire(redistest.Request("key", "a")); !errors.Is(got.Err, store.ErrForeignData) {
				t.Errorf("Acquire with counter %q: got %+v, want ErrForeignData", value, got)
			}
			if got := sv.Do(t, "GET", counter); got != value || sv.Number(t, "EXISTS", lock) != 0 {
				t.Errorf("counter: got %q and a lock, want %q left alone and none", got, value)
			}
		}
		sv.Do(t, "DEL", counter)
		sv.Do(t, "SET", gone, "x")
		if got := c.Acquire(redistest.Request("key", "a")); !errors.Is(got.Err, store.ErrForeignData) {
			t.Errorf("Acquire with a string for the withdrawn: got %+v, want ErrForeignData", got)
		}
		sv.Do(t, "DEL", gone)

		c.Hold("key", "a")
		sv.Do(t, "SET", gone, "x")
		value := sv.Do(t, "GET", lock)
		if got := c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a", Uncertain: true}})[0]; !errors.Is(got.Err, store.ErrForeignData) {
			t.Errorf("Release: got %+v, want ErrForeignData", got)
		}
		sv.Do(t, "SET", counter, "x")
		if got := c.session.Release(t.Context(), []store.ReleaseRequest{{Key: "key", Owner: "a"}})[0]; !errors.Is(got.Err, store.ErrForeignData) {
			t.Errorf("Release: got %+v, want ErrForeignData", got)
		}
		if err := c.renew(store.RenewRequest{Key: "key", Owner: "a", TTL: long, Token: redisconn.MaxToken}); !errors.Is(err, store.ErrForeignData) {
			t.Errorf("Renew with a token: got %v, want ErrForeignData", err)
		}
		if got := sv.Do(t, "GET", lock); got != value {
			t.Errorf("lock: got %q, want %q left alone", got, value)
		}
	})
}

// Force frees a key whose side keys are damaged, whoever has it.
func TestForceReplacesDamagedSideKeys(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		c, j := join(t, sv.store(t)), newJava(sv)
		for name, take := range map[string]func() int64{
			"of ours": func() int64 { return c.Hold("key", "a").Token },
			"of Java": func() int64 { j.hold(t, "key", long); return 0 },
			"nobody":  func() int64 { return 0 },
		} {
			before := take()
			counter, gone := side(sv.lockKey("key"), "f"), side(sv.lockKey("key"), "x")
			sv.Do(t, "DEL", counter)
			sv.Do(t, "RPUSH", counter, "x")
			sv.Do(t, "SET", gone, "x")
			if held, err := c.session.Force(t.Context(), "key", 0); held != (name != "nobody") || err != nil {
				t.Fatalf("Force of a key %s: got %v, %v", name, held, err)
			}
			if got := c.Hold("key", "b").Token; got <= before {
				t.Errorf("token after Force of a key %s: got %d, want more than %d", name, got, before)
			}
			c.release(store.ReleaseRequest{Key: "key", Owner: "b", Uncertain: true})
		}
	})
}
