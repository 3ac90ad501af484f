// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
)

// The server has not answered it, and may execute it later than a command on another connection.
func TestAnAbandonedCallIsNotOvertaken(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		_, line := t.onItsOwn()
		speak := t.server.hush()
		brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := t.conn.Do(brief, t.conn.Commands.B().Arbitrary("WHERE").Build()).Error(); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want DeadlineExceeded", err)
		}
		var calls sync.WaitGroup
		calls.Go(func() {
			if got, err := t.call(t.Context(), "key"); got != line || err != nil {
				t.Errorf("a call behind it: got it on connection %d, %v; want %d", got, err, line)
			}
		})
		synctest.Wait()
		speak()
		calls.Wait()
	})
}

// Many callers about a key are not sent one after the other.
func TestCallersOfAKeyWaitForOneCallOnly(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		solo, line := t.onItsOwn()
		speak := t.server.hush()
		got := make(chan int64, 5)
		for range cap(got) {
			go func() {
				number, err := t.call(t.Context(), "key")
				if err != nil {
					t.Error(err)
				}
				got <- number
			}()
			synctest.Wait()
		}
		speakAgain := t.server.hush()
		speak()
		synctest.Wait()
		if first := <-got; first != solo || len(got) != 0 {
			t.Errorf("got %d answers, the first on connection %d, want one on %d", 1+len(got), first, solo)
		}
		speakAgain()
		rest := []int64{<-got, <-got, <-got, <-got}
		slices.Sort(rest)
		want := []int64{line, line, line, solo}
		if slices.Sort(want); !slices.Equal(rest, want) {
			t.Errorf("those who waited: got them on connections %d, want %d", rest, want)
		}
	})
}

// A server without connections to spare is not asked for one with every call.
func TestAProbeThatFailedIsRepeatedAfterAPause(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		t.server.refuses = true
		for probes := 1; probes <= 3; probes++ {
			for range 100 {
				t.where("key")
			}
			if got := t.server.refused; got != probes {
				t.Fatalf("dials: got %d, want %d", got, probes)
			}
			time.Sleep(soloPause)
			synctest.Wait()
		}
		t.server.refuses = false
		t.onItsOwn()
	})
}

// rueidis would keep such a connection.
func TestCloseWhileASoloIsDialedLeavesNoConnection(t *testing.T) {
	for name, before := range map[string]func(*soloTest){
		"the first": func(t *soloTest) { t.where("key") },
		"another one": func(t *soloTest) {
			solo, _ := t.onItsOwn()
			t.server.conns[solo-1].Close()
			if _, err := t.call(t.Context(), "key"); err == nil {
				t.Fatal("got no error of a connection that the server has closed")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onSolo(t, func(t *soloTest) {
				before(t)
				speak := t.server.hushFor("HELLO")
				conns := len(t.server.conns)
				t.where("key")
				if got := len(t.server.conns); got != conns+1 {
					t.Fatalf("dials: got %d, want one", got-conns)
				}
				t.conn.Close()
				speak()
				synctest.Wait()
				if got := t.server.open; got != 0 {
					t.Errorf("connections after Close: got %d, want none", got)
				}
			})
		})
	}
}

// tunneled is a connection as some tunnels have them.
type tunneled struct{ net.Conn }

func (tunneled) SetDeadline(time.Time) error { return errors.New("no deadlines") }

// A call could not be ended there, and a server that says nothing not be noticed.
func TestAConnectionWithoutDeadlinesIsNoSolo(t *testing.T) {
	onSoloWith(t, func(option *rueidis.ClientOption) {
		dial := option.DialCtxFn
		option.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
			conn, err := dial(ctx, address, dialer, encryption)
			return tunneled{conn}, err
		}
	}, func(t *soloTest) {
		line := t.where("key")
		for range 3 {
			t.where("key")
			t.wantOn("a call soon after", line)
			time.Sleep(soloPause)
		}
		synctest.Wait()
		if dialed, open := len(t.server.conns), t.server.open; dialed != 3 || open != 2 {
			t.Errorf("connections: got %d dialed and %d open, want 3 and 2", dialed, open)
		}
	})
}

// Locks in two servers would exclude nobody.
func TestASoloIsToTheServerOfTheLine(t *testing.T) {
	onSoloWith(t, func(option *rueidis.ClientOption) {
		option.ForceSingleClient, option.ShuffleInit = true, true
		for i := range 1000 {
			option.InitAddress = append(option.InitAddress, fmt.Sprintf("server-%d:6379", i))
		}
	}, func(t *soloTest) {
		solo, line := t.onItsOwn()
		if got, want := t.server.addresses[solo-1], t.server.addresses[line-1]; got != want {
			t.Errorf("got a connection to %s, want it to %s", got, want)
		}
	})
}

// A caller finds out by itself that the connection is broken. Otherwise rueidis would connect again
// within its next call, whatever becomes of that call's context.
func TestNobodyUsesASoloBetweenCalls(t *testing.T) {
	var mu sync.Mutex
	keepAlive := make(map[time.Duration]bool)
	onSoloWith(t, func(option *rueidis.ClientOption) {
		option.OnInvalidations = func([]rueidis.RedisMessage) {}
		option.Dialer.KeepAlive = soloTrust / 4
		dial := option.DialCtxFn
		option.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			keepAlive[dialer.KeepAlive] = true
			return dial(ctx, address, dialer, encryption)
		}
	}, func(t *soloTest) {
		solo, line := t.onItsOwn()
		time.Sleep(soloTrust - 1)
		synctest.Wait()
		if slices.Contains(t.server.pings, int(solo)) {
			t.Error("got a PING, want none")
		}
		mu.Lock()
		if len(keepAlive) != 1 || !keepAlive[soloTrust/4] {
			t.Errorf("dialed with KeepAlive %v, want what was chosen", keepAlive)
		}
		mu.Unlock()
		t.server.conns[solo-1].Close()
		synctest.Wait()
		if got, err := t.call(t.Context(), "key"); err == nil {
			t.Errorf("got an answer on connection %d, want an error", got)
		}
		t.wantOn("the next call", line)
	})
}

func TestCredentialsThatAreRefreshedHaveNoSolo(t *testing.T) {
	onSoloWith(t, func(option *rueidis.ClientOption) {
		option.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			return rueidis.AuthCredentials{Password: "secret", RefreshAfter: time.Now().Add(time.Minute)}, nil
		}
	}, func(t *soloTest) {
		line := t.where("key")
		for range 3 {
			t.wantOn("a call soon after", line)
		}
	})
}

// A hang-up is confined to the call whose context ended.
func TestEachCallOnASoloHasItsOwnDeadline(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		solo, _ := t.onItsOwn()
		long, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for what, ctx := range map[string]context.Context{"with a deadline": long, "without one": t.Context()} {
			_ = t.conn.solo.conn.SetDeadline(time.Unix(1, 0))
			if got, err := t.call(ctx, "key"); got != solo || err != nil {
				t.Errorf("%s: got it on connection %d, %v; want %d", what, got, err, solo)
			}
		}
	})
}

func TestASilentServerEndsACallOnASolo(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		t.onItsOwn()
		speak := t.server.hush()
		began := time.Now()
		if _, err := t.call(context.Background(), "key"); err == nil || time.Since(began) != 3*time.Second {
			t.Errorf("got %v after %v, want an error after 3s", err, time.Since(began))
		}
		speak()
		synctest.Wait()
	})
}

// rueidis would keep such a connection.
func TestCloseWhileALineIsDialedLeavesNoConnection(t *testing.T) {
	onSolo(t, func(t *soloTest) {
		line := t.where("key")
		t.server.conns[line-1].Close()
		synctest.Wait()
		speak := t.server.hushFor("HELLO")
		go func() { _, _ = t.call(t.Context(), "key") }()
		synctest.Wait()
		t.conn.Close()
		speak()
		synctest.Wait()
		if got := t.server.open; got != 0 {
			t.Errorf("connections after Close: got %d, want none", got)
		}
	})
}
