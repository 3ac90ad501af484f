// SPDX-License-Identifier: Apache-2.0

package fenceredis

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/internal/redisslot"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newFence(t *testing.T, c Client, opts ...Option) *Fence {
	t.Helper()
	f, err := New(c, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func newStamp(t *testing.T, key string, token int64) fence.Stamp {
	t.Helper()
	s, err := fence.NewStamp(key, token)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDoRefusesSmallerTokens(t *testing.T) {
	redistest.OnEachServer(t, func(t *testing.T, sv *redistest.Server) {
		f := newFence(t, Rueidis(sv.Raw))
		key, data := "order:"+uuid.NewString(), uuid.NewString()
		var want string
		for _, step := range []struct {
			token    int64
			admitted bool
		}{
			{9, true},
			{9, true}, // one lease writes often
			{8, false},
			{10, true}, // more digits are more
			{9, false},
			{99, true},
			{100, true},
			{1 << 53, true},
			{1<<53 + 1, true}, // which no double is
			{1 << 53, false},
			{1<<63 - 1, true},
			{1<<63 - 2, false},
		} {
			value := uuid.NewString()
			replies, err := f.Do(t.Context(), newStamp(t, key, step.token), Command{"SET", data, value})
			var stale *fence.StaleError
			switch {
			case step.admitted && (err != nil || !reflect.DeepEqual(replies, []any{"OK"})):
				t.Errorf("token %d: got %v, %v, want OK", step.token, replies, err)
			case step.admitted:
				want = value
			case !errors.As(err, &stale) || stale.Key != key || stale.Token != step.token || stale.Newest <= step.token:
				t.Errorf("token %d: got %v, want ErrStale", step.token, err)
			}
			if got := sv.Do(t, "GET", data); got != want {
				t.Errorf("after token %d: got %s, want %s", step.token, got, want)
			}
		}
		if _, err := f.Do(t.Context(), newStamp(t, key+"another", 1), Command{"GET", data}); err != nil {
			t.Errorf("another key: got %v, want no error", err)
		}
		sv.Do(t, "DEL", data, f.name(key), f.name(key+"another"))
	})
}

// Several commands run in turn, with any words, and each has its reply.
func TestDoRunsCommandsInTurn(t *testing.T) {
	redistest.OnEachServer(t, func(t *testing.T, sv *redistest.Server) {
		f, id := newFence(t, Rueidis(sv.Raw)), uuid.NewString()
		h, a, b := newStamp(t, "k"+id, 7), "a"+id, "b\x00\r\n\""+id
		replies, err := f.Do(
			t.Context(), h,
			Command{"RPUSH", a, "x", "y z", ""},
			Command{"GET", b},
			Command{"SET", b, "\xff\x00"},
			Command{"LRANGE", a, "0", "-1"},
			Command{"DEL", a},
			Command{"GET", b},
		)
		want := []any{int64(3), nil, "OK", []any{"x", "y z", ""}, int64(1), "\xff\x00"}
		if err != nil || !reflect.DeepEqual(replies, want) {
			t.Errorf("got %q, %v, want %q", replies, err, want)
		}
		if replies, err := f.Do(t.Context(), newStamp(t, "k"+id, 6), Command{"SET", a, "1"}, Command{"DEL", b}); !errors.Is(err, fence.ErrStale) || replies != nil {
			t.Errorf("a smaller token: got %v, %v, want ErrStale", replies, err)
		}
		// As in a MULTI, what a command can't do does not undo those before it.
		_, err = f.Do(t.Context(), h, Command{"SET", a, "1"}, Command{"LPUSH", a, "2"}, Command{"DEL", a})
		if got := sv.Do(t, "GET", a); err == nil || got != "1" {
			t.Errorf("after a command that fails: got %s, %v, want 1 and an error", got, err)
		}
		sv.Do(t, "DEL", a, b, f.name("k"+id))
	})
}

func TestFenceIsKept(t *testing.T) {
	redistest.OnEachServer(t, func(t *testing.T, sv *redistest.Server) {
		id := uuid.NewString()
		f, other := newFence(t, Rueidis(sv.Raw), WithRetention(48*time.Hour)), newFence(t, Rueidis(sv.Raw), WithResource("stock:x"))
		if _, err := f.Do(t.Context(), newStamp(t, id, 7), Command{"GET", id}); err != nil {
			t.Fatal(err)
		}
		if left := sv.Number(t, "PTTL", f.name(id)); left < (47*time.Hour).Milliseconds() || left > (48*time.Hour).Milliseconds() {
			t.Errorf("got %d ms, want 48 hours", left)
		}
		if _, err := other.Do(t.Context(), newStamp(t, id, 5), Command{"GET", id}); err != nil {
			t.Errorf("another resource: got %v, want no error", err)
		}
		var stale *fence.StaleError
		if _, err := other.Do(t.Context(), newStamp(t, id, 4), Command{"GET", id}); !errors.As(err, &stale) || stale.Resource != "stock:x" {
			t.Errorf("got %v, want ErrStale at the resource", err)
		}
		sv.Do(t, "DEL", f.name(id), other.name(id))
	})
}

// All tokens are compared before any counts, and before any command runs.
func TestDoAllIsOneStep(t *testing.T) {
	redistest.OnEachServer(t, func(t *testing.T, sv *redistest.Server) {
		f, id := newFence(t, Rueidis(sv.Raw)), uuid.NewString()
		a, b, c := "a"+id, "b"+id, "c"+id
		all := func(tokens ...int64) (stamps fence.Stamps) {
			for i, token := range tokens {
				stamps = append(stamps, newStamp(t, []string{c, b, a}[i], token))
			}
			return stamps
		}
		if replies, err := f.DoAll(t.Context(), all(5, 6, 7), Command{"SET", id, "1"}, Command{"INCR", id}); err != nil || !reflect.DeepEqual(replies, []any{"OK", int64(2)}) {
			t.Errorf("got %v, %v, want both replies", replies, err)
		}
		var stale *fence.StaleError
		_, err := f.DoAll(t.Context(), all(4, 9, 9), Command{"INCR", id})
		if !errors.As(err, &stale) || *stale != (fence.StaleError{Key: c, Token: 4, Newest: 5}) {
			t.Errorf("a stale token: got %v, want one of %s", err, c)
		}
		if got := sv.Do(t, "GET", id); got != "2" {
			t.Errorf("after a refusal: got %s, want 2", got)
		}
		for key, token := range map[string]int64{a: 7, b: 6, c: 5} { // no 9 has counted
			if _, err := f.Do(t.Context(), newStamp(t, key, token), Command{"GET", id}); err != nil {
				t.Errorf("%s: got %v, want no error", key, err)
			}
		}
		sv.Do(t, "DEL", f.name(b))
		sv.Do(t, "HSET", f.name(b), "1", "1")
		if _, err := f.DoAll(t.Context(), all(5, 6, 7), Command{"INCR", id}); !errors.Is(err, ErrForeignData) || !strings.Contains(err.Error(), b) {
			t.Errorf("foreign data: got %v, want ErrForeignData of %s", err, b)
		}
		sv.Do(t, "DEL", id, f.name(a), f.name(b), f.name(c))
	})
}

func TestForeignDataIsRefused(t *testing.T) {
	redistest.OnEachServer(t, func(t *testing.T, sv *redistest.Server) {
		f, id := newFence(t, Rueidis(sv.Raw)), uuid.NewString()
		for _, text := range []string{"", "x", "-5", "1e3", "9 ", "99999999999999999999"} {
			sv.Do(t, "SET", f.name(id), text)
			if _, err := f.Do(t.Context(), newStamp(t, id, 7), Command{"SET", id, "1"}); !errors.Is(err, ErrForeignData) {
				t.Errorf("%q: got %v, want ErrForeignData", text, err)
			}
		}
		sv.Do(t, "DEL", f.name(id))
		sv.Do(t, "HSET", f.name(id), "1", "1")
		if _, err := f.Do(t.Context(), newStamp(t, id, 7), Command{"SET", id, "1"}); !errors.Is(err, ErrForeignData) {
			t.Errorf("a hash: got %v, want ErrForeignData", err)
		}
		if got := sv.Do(t, "EXISTS", id); got != "0" {
			t.Error("something was written")
		}
		sv.Do(t, "DEL", f.name(id))
	})
}

// evals is a client that a test answers for.
func evals(reply any, err error) Client {
	return Client{eval: func(context.Context, string, []string, []string) (any, error) { return reply, err }}
}

func TestAnswersThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for _, reply := range []any{
		nil, "OK",
		[]any{},
		[]any{int64(2), int64(1)},
		[]any{"1"},
		[]any{int64(0)},
		[]any{int64(0), int64(1), "7"},
		[]any{int64(0), int64(1), int64(9)},
		[]any{int64(0), int64(2), "9"},
		[]any{int64(-1), int64(0)},
	} {
		if _, err := newFence(t, evals(reply, nil)).Do(t.Context(), newStamp(t, "k", 7), Command{"GET", "k"}); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("%v: got %v, want another error", reply, err)
		}
	}
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	never := Client{eval: func(context.Context, string, []string, []string) (any, error) { panic("sent") }}
	f, good := newFence(t, never), Command{"GET", "k"}
	var none context.Context
	do := func(ctx context.Context, f *Fence, h fence.Holder, commands ...Command) error {
		_, err := f.Do(ctx, h, commands...)
		return err
	}
	stamp := newStamp(t, "k", 1)
	long := slices.Repeat([]string{"w"}, MaxWords-1)
	made := func(c Client, opts ...Option) error {
		_, err := New(c, opts...)
		return err
	}
	for name, err := range map[string]error{
		"nil Fence":      do(t.Context(), nil, stamp, good),
		"zero Fence":     do(t.Context(), new(Fence), stamp, good),
		"no context":     do(none, f, stamp, good),
		"no holder":      do(t.Context(), f, nil, good),
		"no holders":     func() error { _, err := f.DoAll(t.Context(), nil, good); return err }(),
		"no command":     do(t.Context(), f, stamp),
		"nil command":    do(t.Context(), f, stamp, good, nil),
		"no key":         do(t.Context(), f, stamp, Command{"PING"}),
		"empty key":      do(t.Context(), f, stamp, Command{"GET", ""}),
		"no name":        do(t.Context(), f, stamp, Command{"", "k"}),
		"too many words": do(t.Context(), f, stamp, good, long),
		"no client":      made(Client{}),
		"nil client":     made(Rueidis(nil)),
		"nil option":     made(never, nil),
		"short":          made(never, WithRetention(MinRetention-1)),
		"long":           made(never, WithRetention(1<<63-1)),
		"resource":       made(never, WithResource(strings.Repeat("r", 65))),
	} {
		if !errors.Is(err, fence.ErrInvalidOption) {
			t.Errorf("%s: got %v, want ErrInvalidOption", name, err)
		}
	}
	if err := do(t.Context(), f, fence.Stamp{}, good); !errors.Is(err, fence.ErrInvalidKey) {
		t.Errorf("no stamp: got %v, want ErrInvalidKey", err)
	}
}

// As many words as are allowed do not overflow Lua's stack.
func TestDoTakesManyWords(t *testing.T) {
	redistest.OnEachServer(t, func(t *testing.T, sv *redistest.Server) {
		f, id := newFence(t, Rueidis(sv.Raw)), uuid.NewString()
		words := append(Command{"RPUSH", id}, slices.Repeat([]string{"w"}, MaxWords-2)...)
		if replies, err := f.Do(t.Context(), newStamp(t, id, 1), words); err != nil || replies[0] != int64(MaxWords-2) {
			t.Errorf("got %v, %v, want %d", replies, err, MaxWords-2)
		}
		sv.Do(t, "DEL", id, f.name(id))
	})
}

// FuzzName: no two fences have one name, and the name is in the slot of the lock's key.
func FuzzName(f *testing.F) {
	f.Add("order:42", "", "order:{42}", "a")
	f.Add("order:{42}", "a", "order:{42}", "b")
	f.Add("{t}c", "a:b", "b:{t}c", "a")
	f.Add("{", "", "}{", "")
	f.Add("{}x", "r", "{{}}", "r")
	f.Add("a}b", "", "}x", "")
	f.Add("{}", "", "a{}b", "")
	f.Fuzz(func(t *testing.T, key, resource, otherKey, otherResource string) {
		name, other := (&Fence{settings: settings{resource: resource}}).name(key), (&Fence{settings: settings{resource: otherResource}}).name(otherKey)
		if same := key == otherKey && resource == otherResource; (name == other) != same {
			t.Errorf("(%q, %q) and (%q, %q): got %q and %q", key, resource, otherKey, otherResource, name, other)
		}
		if redisslot.Of(name) != redisslot.Of(key) && key != "" {
			t.Errorf("%q: its fence %q is in slot %d, want %d", key, name, redisslot.Of(name), redisslot.Of(key))
		}
	})
}
