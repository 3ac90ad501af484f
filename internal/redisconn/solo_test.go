// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
)

// A soloServer is a server whose connections are numbered, from 1 on. It answers each command with
// the number of its connection, unless it is silent.
type soloServer struct {
	mu        sync.Mutex
	conns     []net.Conn // the server's ends
	addresses []string   // which were dialed for them
	open      int        // how many are open
	pings     []int      // which connection each PING came on
	refused   int        // dials
	refuses   bool
	silent    chan struct{}
	silentFor string // a command; "" for all
}

func (s *soloServer) dial(_ context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
	near, far := net.Pipe()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses {
		s.refused++
		return nil, errors.New("refused")
	}
	s.conns, s.addresses = append(s.conns, far), append(s.addresses, address)
	s.open++
	go s.serve(far, len(s.conns)) // ends with the connection
	return near, nil
}

func (s *soloServer) serve(conn net.Conn, number int) {
	defer func() {
		conn.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
	}()
	for r := bufio.NewReader(conn); ; {
		words, err := readCommand(r)
		if err != nil {
			return
		}
		answer := fmt.Sprintf(":%d\r\n", number)
		switch words[0] {
		case "HELLO":
			answer = "%2\r\n+version\r\n+7.0.0\r\n+proto\r\n:3\r\n"
		case "CLIENT", "PING":
			answer = "+OK\r\n"
		case "CLUSTER":
			answer = "-ERR This instance has cluster support disabled\r\n"
		}
		s.mu.Lock()
		if words[0] == "PING" {
			s.pings = append(s.pings, number)
		}
		silent, hushed := s.silent, s.silent != nil && (s.silentFor == "" || s.silentFor == words[0])
		s.mu.Unlock()
		if hushed {
			<-silent
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) (words []string, err error) {
	var n, size int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	for range n {
		if _, err := fmt.Fscanf(r, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		words = append(words, string(word[:size]))
	}
	return words, nil
}

// hush makes the server silent until the returned function is called. Commands that come after another
// hush wait for that one.
func (s *soloServer) hush() (speak func()) { return s.hushFor("") }

// hushFor is hush for one command.
func (s *soloServer) hushFor(command string) (speak func()) {
	silent := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent, s.silentFor = silent, command
	return func() {
		s.mu.Lock()
		if s.silent == silent {
			s.silent = nil
		}
		s.mu.Unlock()
		close(silent)
	}
}

// A soloTest is a connection to such a server.
type soloTest struct {
	*testing.T

	server *soloServer
	conn   *Conn
}

func onSolo(t *testing.T, test func(*soloTest)) {
	t.Helper()
	onSoloWith(t, func(*rueidis.ClientOption) {}, test)
}

func onSoloWith(t *testing.T, change func(*rueidis.ClientOption), test func(*soloTest)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &soloServer{}
		option := rueidis.ClientOption{InitAddress: []string{"server:6379"}, DialCtxFn: s.dial}
		change(&option)
		conn, err := Open(option)
		if err != nil {
			t.Fatal(err)
		}
		test(&soloTest{t, s, conn})
		conn.Close()
	})
}

// call makes a call about a key and returns the number of its connection.
func (t *soloTest) call(ctx context.Context, key string) (number int64, err error) {
	command := t.conn.Commands.B().Arbitrary("WHERE").Build()
	return t.conn.DoAbout(ctx, []string{key}, command).ToInt64()
}

// where is call, for one that must succeed.
func (t *soloTest) where(key string) int64 {
	t.Helper()
	number, err := t.call(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // for a probe
	return number
}

// onItsOwn makes calls until they have a connection for themselves, and returns its number and that
// of the other one.
func (t *soloTest) onItsOwn() (solo, line int64) {
	t.Helper()
	line = t.where("key")
	t.where("key") // begins a probe
	if solo = t.where("key"); solo == line {
		t.Fatalf("three calls on connection %d, want the third one on another", line)
	}
	return solo, line
}

func (t *soloTest) wantOn(what string, want int64) {
	t.Helper()
	if got := t.where("key"); got != want {
		t.Errorf("%s: got a call on connection %d, want it on %d", what, got, want)
	}
}

func TestCallsThatFollowEachOtherCloselyHaveAConnection(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		line := t.where("key")
		for range 3 {
			time.Sleep(soloTrust)
			t.wantOn("a call long after the one before", line)
		}
		if got := len(t.server.conns); got != 2 { // one for commands and one for messages
			t.Errorf("connections: got %d, want 2", got)
		}
		solo, _ := t.onItsOwn()
		time.Sleep(soloTrust - 1)
		t.wantOn("a call soon after", solo)
		time.Sleep(soloTrust)
		t.wantOn("a call long after", line)
		t.wantOn("the call behind it", line)
		t.wantOn("after a probe", solo)
	})
}

func TestCallersTogetherShareTheLine(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		solo, line := t.onItsOwn()
		speak := t.server.hush()
		var got []int64
		var mu sync.Mutex
		var calls sync.WaitGroup
		for i := range 4 {
			calls.Go(func() {
				number, err := t.call(t.Context(), fmt.Sprint("key ", i))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, number)
			})
			synctest.Wait()
		}
		speak()
		calls.Wait()
		slices.Sort(got)
		want := []int64{line, line, line, solo}
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("four calls at once: got them on connections %d, want %d", got, want)
		}

		speak = t.server.hush()
		calls.Go(func() { _, _ = t.conn.Do(t.Context(), t.conn.Commands.B().Arbitrary("WHERE").Build()).ToInt64() })
		synctest.Wait()
		calls.Go(func() {
			if got, err := t.call(t.Context(), "key"); got != line || err != nil {
				t.Errorf("a call beside one on the line: got it on connection %d, %v; want %d", got, err, line)
			}
		})
		synctest.Wait()
		speak()
		calls.Wait()
	})
}

// A release must not be overtaken by the next acquire of the key.
func TestCallsAboutAKeyKeepTheirOrder(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		solo, _ := t.onItsOwn()
		speak := t.server.hush()
		var calls sync.WaitGroup
		ended := make(chan string, 3)
		for _, name := range []string{"first", "second"} {
			calls.Go(func() {
				if got, err := t.call(t.Context(), "key"); got != solo || err != nil {
					t.Errorf("%s: got it on connection %d, %v; want %d", name, got, err, solo)
				}
				ended <- name
			})
			synctest.Wait()
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := t.call(impatient, "key"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third caller whose context ends: got %v, want DeadlineExceeded", err)
		}
		speak()
		calls.Wait()
		if got := []string{<-ended, <-ended}; !slices.Equal(got, []string{"first", "second"}) {
			t.Errorf("got the answers in the order %q", got)
		}
	})
}

// A context that ends closes the connection, since nobody would read the answer.
func TestAContextEndsACallOnASolo(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		const patience = time.Second + soloCheck/2
		late := map[string]time.Duration{"canceled": soloCheck} // at most
		for what, bounded := range map[string]func() (context.Context, context.CancelFunc){
			"canceled": func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(patience, cancel)
				return ctx, cancel
			},
			"at its deadline": func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), patience) },
		} {
			solo, line := t.onItsOwn()
			speak := t.server.hush()
			ctx, cancel := bounded()
			began := time.Now()
			_, err := t.call(ctx, "key")
			synctest.Wait()
			if took := time.Since(began); !errors.Is(err, ctx.Err()) || took < patience || took > patience+late[what] {
				t.Errorf("%s: got %v after %v, want %v after %v", what, err, took, ctx.Err(), patience)
			}
			cancel()
			speak()
			t.wantOn("the next call, which begins a probe", line)
			if got := t.where("key"); got == line || got == solo {
				t.Errorf("%s: a call after that: got it on connection %d, want a new one", what, got)
			}
			time.Sleep(2 * soloTrust)
		}
	})
}

func TestAnErrorOnASoloIsTheCallers(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		solo, line := t.onItsOwn()
		t.server.conns[solo-1].Close()
		if _, err := t.call(t.Context(), "key"); err == nil || strings.Contains(err.Error(), "deadline") {
			t.Errorf("on a connection that the server has closed: got %v, want its error", err)
		}
		t.wantOn("the next call", line)
	})
}

func TestCloseEndsACallOnASolo(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		t.onItsOwn()
		speak := t.server.hush()
		failed := make(chan error, 1)
		go func() {
			_, err := t.call(t.Context(), "key")
			failed <- err
		}()
		synctest.Wait()
		t.conn.Close()
		if err := <-failed; err == nil {
			t.Error("got no error, want one")
		}
		speak()
	})
}
