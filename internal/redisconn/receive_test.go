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

// A moodyServer has channels, repeats what it is told by ECHO, and in some moods answers every command with the same error.
type moodyServer struct {
	mu     sync.Mutex
	mood   string
	old    bool                  // answers another HELLO as over RESP2
	conns  map[net.Conn][]string // the channels of each
	dialed int
	words  []string      // the first of each command
	held   chan struct{} // dials wait until it is closed, unless it is nil
}

// sulking is the mood in which subscriptions are not answered.
const sulking = "sulking"

func (s *moodyServer) dial(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if held != nil {
		<-held
	}
	near, far := net.Pipe()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialed++
	s.conns[far] = nil
	go s.serve(far) // ends with the connection
	return near, nil
}

func (s *moodyServer) serve(conn net.Conn) {
	defer func() {
		conn.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, conn)
	}()
	for r := bufio.NewReader(conn); ; {
		words, err := readCommand(r)
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, s.answer(conn, words)); err != nil || words[0] == "QUIT" {
			return
		}
	}
}

func (s *moodyServer) answer(conn net.Conn, words []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.words = append(s.words, words[0])
	switch {
	case words[0] == "HELLO" && s.old:
		return "*2\r\n+proto\r\n:2\r\n"
	case words[0] == "HELLO":
		return "%2\r\n+version\r\n+7.0.0\r\n+proto\r\n:3\r\n"
	case s.mood == sulking && words[0] == "SUBSCRIBE":
		return ""
	case s.mood != "" && words[0] != "QUIT": // which Redis answers in any mood
		return "-" + s.mood + "\r\n"
	case words[0] == "SUBSCRIBE":
		s.conns[conn] = append(s.conns[conn], words[1])
	case words[0] == "UNSUBSCRIBE":
		s.conns[conn] = slices.DeleteFunc(s.conns[conn], func(name string) bool { return name == words[1] })
	case words[0] == "PING":
		return "+PONG\r\n"
	case words[0] == "ECHO":
		return fmt.Sprintf("$%d\r\n%s\r\n", len(words[1]), words[1])
	default:
		return "+OK\r\n"
	}
	return fmt.Sprintf(">3\r\n+%s\r\n+%s\r\n:%d\r\n", strings.ToLower(words[0]), words[1], len(s.conns[conn]))
}

func (s *moodyServer) be(mood string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mood = mood
}

// subscribed are the channels of each connection that has some.
func (s *moodyServer) subscribed() (all [][]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, channels := range s.conns {
		if len(channels) > 0 {
			all = append(all, channels)
		}
	}
	return all
}

// onMoodyServer runs a test in virtual time, with connections of a store's own or with an application's client.
func onMoodyServer(t *testing.T, shared bool, test func(*testing.T, *moodyServer, *Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &moodyServer{conns: make(map[net.Conn][]string)}
		option := rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}, DialCtxFn: s.dial, ForceSingleClient: true}
		open := Open
		if shared {
			open = func(option rueidis.ClientOption) (*Conn, error) {
				client, err := rueidis.NewClient(ForLocks(option))
				if err != nil {
					return nil, err
				}
				t.Cleanup(client.Close)
				return Share(client)
			}
		}
		conn, err := open(option)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		test(t, s, conn)
	})
}

// receive subscribes to a channel, and returns when it is confirmed. The function that it returns ends the subscription.
func receive(t *testing.T, conn *Conn, channel string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	confirmed, ended := make(chan struct{}), make(chan error, 1)
	var first sync.Once // rueidis also tells of others' subscriptions to the channel
	go func() {         // ends with ctx
		subscribe := conn.Inboxes.B().Subscribe().Channel(channel).Build()
		ended <- conn.Receive(ctx, subscribe, func(rueidis.PubSubSubscription) { first.Do(func() { close(confirmed) }) }, func(rueidis.PubSubMessage) {})
	}()
	<-confirmed
	return func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end of the context", err)
		}
		synctest.Wait()
	}
}

// Whatever a server answers while subscriptions end, no goroutine of the client library panics, which would end
// the process, and no answer is taken for that of another command.
func TestNoAnswerToTheEndOfASubscriptionEndsTheProcess(t *testing.T) {
	t.Parallel()
	for _, mood := range []string{
		"BUSY Redis is busy running a script.", "LOADING Redis is loading the dataset in memory",
		"MASTERDOWN Link with MASTER is down", "ERR upstream failure", "NOAUTH Authentication required.",
	} {
		for _, shared := range []bool{false, true} {
			word, _, _ := strings.Cut(mood, " ")
			t.Run(fmt.Sprintf("%s/shared=%v", word, shared), func(t *testing.T) {
				t.Parallel()
				onMoodyServer(t, shared, func(t *testing.T, s *moodyServer, conn *Conn) {
					endA, endB := receive(t, conn, "a"), receive(t, conn, "b")
					s.be(mood)
					endA()
					endB()
					if text, ok := Refusal(conn.Inboxes.Do(t.Context(), conn.Inboxes.B().Echo().Message("x").Build()).Error()); !ok || text == "" {
						t.Error("the server's mood: got no error of its, want one")
					}
					s.be("")
					for _, message := range []string{"x", "y", "z"} {
						if got, err := conn.Inboxes.Do(t.Context(), conn.Inboxes.B().Echo().Message(message).Build()).ToString(); got != message {
							t.Errorf("got the answer %q, %v; want %q", got, err, message)
						}
					}
					receive(t, conn, "a")()
				})
			})
		}
	}
}

// The last subscription of a connection ends with it, and another one does not.
func TestAConnectionEndsWithItsLastSubscription(t *testing.T) {
	t.Parallel()
	onMoodyServer(t, false, func(t *testing.T, s *moodyServer, conn *Conn) {
		endA, endB := receive(t, conn, "a"), receive(t, conn, "b")
		dialed := s.dialed
		endA()
		if got := s.subscribed(); len(got) != 1 || s.dialed != dialed {
			t.Errorf("after the end of one of two: got %v and %d more connections, want the other one undisturbed", got, s.dialed-dialed)
		}
		endB()
		if got := s.subscribed(); len(got) != 0 {
			t.Errorf("after the end of both: got %v, want none", got)
		}
	})
}

// Two that subscribe to the same channel do not end each other's subscription, and leave nothing behind.
func TestTheSameChannelTwice(t *testing.T) {
	t.Parallel()
	onMoodyServer(t, false, func(t *testing.T, s *moodyServer, conn *Conn) {
		end := receive(t, conn, "a")
		dialed := s.dialed
		for range 10 {
			receive(t, conn, "a")()
		}
		if s.dialed != dialed {
			t.Errorf("got %d more connections, want none", s.dialed-dialed)
		}
		end()
		if got := s.subscribed(); len(got) != 0 {
			t.Errorf("after the end of all: got %v, want none", got)
		}
	})
}

// Few subscriptions are left behind beside one that lasts.
func TestWhatIsLeftBehindIsBounded(t *testing.T) {
	t.Parallel()
	var s subscriptions
	s.add("lasts")
	for i := range leftBehind + 1 {
		name := fmt.Sprint(i)
		s.add(name)
		if got, want := s.leave(name), i == leftBehind; got != want {
			t.Fatalf("number %d: got %v, want %v for the end of the connection", i, got, want)
		}
	}
	s.forget()
	s.add("another")
	if s.leave("another") {
		t.Error("after the end of the connection: got another end at once, want none")
	}
}

// A caller that has gone before its subscription was there ends no connection: over RESP2 there would be no other.
func TestWhoHasNotSubscribedEndsNothing(t *testing.T) {
	t.Parallel()
	onMoodyServer(t, false, func(t *testing.T, s *moodyServer, conn *Conn) {
		s.be(sulking)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { // ends with ctx
			subscribe := conn.Inboxes.B().Subscribe().Channel("a").Build()
			ended <- conn.Receive(ctx, subscribe, func(rueidis.PubSubSubscription) {}, func(rueidis.PubSubMessage) {})
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end of the context", err)
		}
		if slices.Contains(s.words, "QUIT") {
			t.Errorf("got the commands %v, want no end of the connection", s.words)
		}
	})
}

// Over RESP2 no connection is ended.
func TestOverRESP2NoConnectionIsEnded(t *testing.T) {
	t.Parallel()
	onMoodyServer(t, false, func(t *testing.T, s *moodyServer, conn *Conn) {
		s.mu.Lock()
		s.old = true
		s.mu.Unlock()
		receive(t, conn, "a")()
		if slices.Contains(s.words, "QUIT") {
			t.Errorf("got the commands %v, want no end of the connection", s.words)
		}
	})
}

// rueidis keeps a connection that is dialed while its client is closed.
func TestAConnectionThatIsDialedDuringCloseIsClosed(t *testing.T) {
	t.Parallel()
	onMoodyServer(t, false, func(t *testing.T, s *moodyServer, conn *Conn) {
		held := make(chan struct{})
		s.mu.Lock()
		s.held = held
		for c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { // ends with ctx
			subscribe := conn.Inboxes.B().Subscribe().Channel("a").Build()
			ended <- conn.Receive(ctx, subscribe, func(rueidis.PubSubSubscription) {}, func(rueidis.PubSubMessage) {})
		}()
		synctest.Wait()
		conn.Close()
		close(held)
		synctest.Wait()
		cancel()
		<-ended //nolint:errcheck // whatever it is
		time.Sleep(time.Minute)
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.conns) > 0 {
			t.Errorf("got %d connections after Close, want none", len(s.conns))
		}
	})
}

// An application's client is left alone: it may be in use for anything.
func TestTheConnectionOfAnApplicationIsNotEnded(t *testing.T) {
	t.Parallel()
	onMoodyServer(t, true, func(t *testing.T, s *moodyServer, conn *Conn) {
		receive(t, conn, "a")()
		if slices.Contains(s.words, "QUIT") || slices.Contains(s.words, "UNSUBSCRIBE") {
			t.Errorf("got the commands %v, want nothing but the subscription", s.words)
		}
	})
}
