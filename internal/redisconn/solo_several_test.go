// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
)

// callAll makes one call of a command about each of the keys, and returns the numbers of its connections.
func (t *soloTest) callAll(ctx context.Context, keys ...string) (numbers []int64, err error) {
	commands := make([]rueidis.Completed, len(keys))
	for i := range keys {
		commands[i] = t.conn.Commands.B().Arbitrary("WHERE").Build()
	}
	for _, result := range t.conn.DoMultiAbout(ctx, keys, commands...) {
		number, failed := result.ToInt64()
		numbers, err = append(numbers, number), errors.Join(err, failed)
	}
	return numbers, err
}

// wantAllOn fails the test unless one call about the keys is made on this connection.
func (t *soloTest) wantAllOn(what string, want int64, keys ...string) {
	t.Helper()
	got, err := t.callAll(t.Context(), keys...)
	if err != nil || !slices.Equal(got, slices.Repeat([]int64{want}, len(keys))) {
		t.Errorf("%s: got the commands on connections %d, %v; want %d of them on %d", what, got, err, len(keys), want)
	}
}

func TestSeveralCommandsOfACallerThatIsAlone(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		solo, line := t.onItsOwn()
		t.wantAllOn("a call of three commands", solo, "a", "b", "c")
		t.wantAllOn("a call as large as there may be", solo, make([]string, soloCommands)...)
		t.wantAllOn("a larger one", line, make([]string, soloCommands+1)...)
		t.wantOn("a call after these", solo)
		time.Sleep(soloTrust)
		t.wantAllOn("a call long after the one before", line, "a", "b")
	})
}

// A call about any of the keys of the call under way waits for it, and no other one does.
func TestSeveralCommandsKeepTheOrderOfEachKey(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		solo, line := t.onItsOwn()
		for _, second := range []struct {
			keys []string
			on   int64
		}{{[]string{"b", "c"}, solo}, {[]string{"c", "d"}, line}} {
			speak := t.server.hush()
			var calls sync.WaitGroup
			calls.Go(func() { t.wantAllOn("the first call", solo, "a", "b") })
			synctest.Wait()
			impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if _, err := t.callAll(impatient, "x", "a"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a caller whose context ends: got %v, want DeadlineExceeded", err)
			}
			cancel()
			calls.Go(func() { t.wantAllOn("the second call", second.on, second.keys...) })
			synctest.Wait()
			speak()
			calls.Wait()
		}
	})
}

func TestSeveralCommandsEndWithTheirContext(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		solo, line := t.onItsOwn()
		speak := t.server.hush()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, err := t.callAll(ctx, "a", "b")
		synctest.Wait()
		if took := time.Since(began); !errors.Is(err, context.Canceled) || took > time.Second+soloCheck {
			t.Errorf("got %v after %v, want Canceled after a second", err, took)
		}
		speak()
		t.wantAllOn("the next call, which begins a probe", line, "a", "b")
		synctest.Wait()
		if got := t.where("key"); got == line || got == solo {
			t.Errorf("a call after that: got it on connection %d, want a new one", got)
		}
	})
}

// The server may have answered some of the commands. None counts as answered.
func TestSeveralCommandsFailTogether(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		solo, line := t.onItsOwn()
		t.server.conns[solo-1].Close()
		got, err := t.callAll(t.Context(), "a", "b")
		if err == nil || !slices.Equal(got, []int64{0, 0}) {
			t.Errorf("on a connection that the server has closed: got %d, %v", got, err)
		}
		t.wantAllOn("the next call", line, "a", "b")
	})
}
