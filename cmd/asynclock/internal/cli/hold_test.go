// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/asynclock/asynclock-go/cmd/asynclock/internal/cli"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// A talk is a command that runs in this process, and whose streams the test has.
type talk struct {
	stdin          io.Closer
	stdout, stderr buffer
	done           chan result
	end            context.CancelFunc
}

// talk begins a command. It ends with the test, or before.
func (p place) talk(t *testing.T, args ...string) *talk {
	t.Helper()
	stdin, open := io.Pipe()
	ctx, end := context.WithCancel(t.Context())
	c := &talk{stdin: open, done: make(chan result, 1), end: end}
	ended := make(chan struct{})
	t.Cleanup(func() {
		open.Close()
		end()
		<-ended
	})
	go func() { // ends with the command, which ends with t.Context() at the latest
		defer close(ended)
		code := cli.Run(ctx, append([]string{"--redis", p.url}, args...), stdin, &c.stdout, &c.stderr)
		c.done <- result{code, c.stdout.String(), c.stderr.String()}
	}()
	return c
}

// says waits until stdout contains the text.
func (c *talk) says(t *testing.T, text string) {
	t.Helper()
	kit.Eventually(t, "the command says "+text, func() bool { return strings.Contains(c.stdout.String(), text) })
}

func TestHoldUntilStdinCloses(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	holds := redis.talk(t, "hold", "k", "--holder", "me")
	holds.says(t, "\n")
	redis.run(t, "run", "k", "--wait", "0", "--", program(t), "exit", "0").want(t, 75, "held by me")
	info, err := redis.newClient(t).Inspect(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	holds.stdin.Close()
	got := finished(t, holds.done)
	got.want(t, 0)
	if want := fmt.Sprintf("%d k\n", info.Token); got.stdout != want {
		t.Errorf("got %q, want %q", got.stdout, want)
	}
	got = redis.run(t, "hold", "k", "--wait", "0", "--json") // it is free
	got.want(t, 0)
	object(t, got.stdout, "key", "token")
}

// TestHoldTakesTheOptionsOfRun, which the tests of run look at more closely.
func TestHoldTakesTheOptionsOfRun(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "held")
	redis.run(t, "hold", "held", "-w", "0.5", "-E", "3").want(t, 3, `no lock on "held" within 500ms`)
	redis.run(t, "hold", "min", "--min-hold", "1h").want(t, 0)
	redis.run(t, "hold", "min", "-n").want(t, 75, "is held by pid ", " hold")
}

// TestHoldIsLost: it says so, and does not hold on.
func TestHoldIsLost(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	forced := redis.talk(t, "hold", "k")
	forced.says(t, "\n")
	redis.run(t, "unlock", "--force", "--token", "0", "k").want(t, 0)
	finished(t, forced.done).want(t, 79, `asynclock: "k": lease lost: unlocked by force`)
}

// TestHoldThatNobodyHears: without its line the key is of no use, so it is given back.
func TestHoldThatNobodyHears(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	_, closed := io.Pipe()
	closed.Close()
	stdin, open := io.Pipe()
	defer open.Close()
	done := make(chan result, 1)
	go func() { // ends with the command, which is waited for below
		var stderr buffer
		code := cli.Run(t.Context(), []string{"--redis", redis.url, "hold", "k"}, stdin, closed, &stderr)
		done <- result{code, "", stderr.String()}
	}()
	finished(t, done).want(t, 70, "closed pipe")
	redis.run(t, "hold", "k", "-n").want(t, 0)
}

// TestHoldWhoseLineIsNotRead ends all the same, with the code of why it ends.
func TestHoldWhoseLineIsNotRead(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	for key, want := range map[string]int{"closed": 0, "lost": 79} {
		unread, stdout := io.Pipe()
		stdin, open := io.Pipe()
		var stderr buffer
		done := make(chan result, 1)
		go func() { // ends with the command, which is waited for below
			code := cli.Run(t.Context(), []string{"--redis", redis.url, "hold", key}, stdin, stdout, &stderr)
			done <- result{code, "", stderr.String()}
		}()
		kit.Eventually(t, key, func() bool { return strings.Contains(redis.run(t, "ls").stdout, key) })
		if key == "closed" {
			open.Close()
		} else {
			redis.run(t, "unlock", key, "--force", "--token", "0").want(t, 0)
		}
		if got := finished(t, done); got.code != want {
			t.Errorf("%s: got %+v, want exit code %d", key, got, want)
		}
		open.Close()
		unread.Close()
	}
}

// TestHoldLeavesItsNote before it says that it has the key, and run before its command begins.
func TestHoldLeavesItsNote(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	locks := redis.newClient(t)
	holds := redis.talk(t, "hold", "held", "--note", "10.0.0.7:80")
	holds.says(t, "\n")
	note, err := locks.Note(t.Context(), "held")
	if err != nil || string(note.Data) != "10.0.0.7:80" || note.Token != note.HolderToken {
		t.Errorf("got %+v, %v; want the note of the holder", note, err)
	}
	redis.run(t, "run", "k", "--note", "here", "--", program(t), "exit", "4").want(t, 4)
	if note, err = locks.Note(t.Context(), "k"); err != nil || string(note.Data) != "here" || note.Held {
		t.Errorf("got %+v, %v; want the note of the command", note, err)
	}
	holds.stdin.Close()
	finished(t, holds.done).want(t, 0)
}

// TestANoteThatCanNotBeWritten is said, and keeps no command from its work.
func TestANoteThatCanNotBeWritten(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.Server().SetPreHook(func(c *server.Peer, command string, args ...string) bool {
		if strings.HasPrefix(command, "EVAL") && slices.Contains(args, "the note") {
			c.WriteError("NOPERM this user has no permissions")
			return true
		}
		return standalone(c, command)
	})
	got := redis.run(t, "run", "k", "--note", "the note", "--", program(t), "exit", "4")
	got.want(t, 4, `asynclock: announce "k": `)
}
