// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"regexp"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
)

// silent is a dialer as rueidis has it by default, in a network that swallows what it sends.
func silent(timeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: timeout, ControlContext: func(ctx context.Context, _, _ string, _ syscall.RawConn) error {
		<-ctx.Done()
		return ctx.Err()
	}}
}

// A failover waits for a dial to the old primary, whose host may be down.
func TestAHostThatIsDownIsGivenUpSoon(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]*tls.Config{"plain": nil, "encrypted": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := ForLocks(rueidis.ClientOption{}).DialCtxFn(t.Context(), "127.0.0.1:1", silent(rueidis.DefaultDialTimeout), config)
				if took := time.Since(began); took != time.Second {
					t.Errorf("dialed for %v, want a second", took)
				}
				if err := Classify(err); !errors.Is(err, store.ErrUnreachable) {
					t.Errorf("got %v, want ErrUnreachable", err)
				}
			})
		})
	}
}

// The hosts of a name share the dialer's whole time. Encryption has it too: a server that has
// answered is not down.
func TestADialThatMayTakeLongerDoes(t *testing.T) {
	t.Parallel()
	const timeout = 1500 * time.Millisecond
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = deaf.Close() })
	for name, dial := range map[string]func() (net.Conn, error){
		"a name": func() (net.Conn, error) {
			return dialPromptly(t.Context(), "localhost:1", silent(timeout), nil)
		},
		"encryption": func() (net.Conn, error) {
			return dialPromptly(t.Context(), deaf.Addr().String(), &net.Dialer{Timeout: timeout}, &tls.Config{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for { // again if the machine was too busy to connect in the second that a host has to answer
				began := time.Now()
				_, err := dial()
				took := time.Since(began)
				var late *net.OpError
				if errors.As(err, &late) && late.Op == "dial" && name == "encryption" {
					continue
				}
				if err == nil || took < timeout-100*time.Millisecond {
					t.Errorf("got %v after %v, want an error after %v", err, took, timeout)
				}
				return
			}
		})
	}
}

// As requests begin. A line of random bytes in the first message of TLS may begin with a star, too.
var request = regexp.MustCompile(`^\*[0-9]+$`)

// plainServer answers lines without TLS, as Redis does. Like Redis it waits for the rest of a command when it gets the
// first message of TLS. It counts the lines that are more than a question whether it speaks so.
func plainServer(t *testing.T) (address string, told *atomic.Int32) {
	t.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plain.Close() })
	told = new(atomic.Int32)
	go func() { // ends with the listener
		for {
			conn, err := plain.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the connection
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					switch {
					case lines.Text() == "PING":
						_, _ = conn.Write([]byte("-NOAUTH\r\n"))
					case request.MatchString(lines.Text()):
						told.Add(1)
						return
					}
				}
			}()
		}
	}()
	return plain.Addr().String(), told
}

// The first of its questions does not arrive, as happens where a dial is late.
func TestAServerWithoutTLSIsFoundOut(t *testing.T) {
	t.Parallel()
	address, _ := plainServer(t)
	var dials atomic.Int32
	second := func(string, string, syscall.RawConn) error {
		if dials.Add(1) == 2 {
			return errors.New("late")
		}
		return nil
	}
	began := time.Now()
	_, err := dialPromptly(t.Context(), address, &net.Dialer{Timeout: time.Minute, Control: second}, &tls.Config{})
	if took := time.Since(began); !errors.Is(err, errPlain) || took > 30*time.Second {
		t.Errorf("got %v after %v, want errPlain soon", err, took)
	}
}

// A sentinel without TLS is told nothing.
func TestSentinelsWithoutTLSAreRefused(t *testing.T) {
	t.Parallel()
	address, told := plainServer(t)
	byURL, err := ParseURL("rediss://" + address + "?master_set=main&sentinel_password=secret")
	if err != nil {
		t.Fatal(err)
	}
	byOption := rueidis.ClientOption{InitAddress: []string{address}, TLSConfig: new(tls.Config)}
	byOption.Sentinel.MasterSet = "main"
	for name, option := range map[string]rueidis.ClientOption{"a URL": byURL, "TLSConfig alone": byOption} {
		if _, err := Open(option); !errors.Is(err, store.ErrUnreachable) || told.Load() > 0 {
			t.Errorf("by %s: got %v after %d requests, want ErrUnreachable and none", name, err, told.Load())
		}
	}
}

// A caller that has a dial function or a Timeout knows better.
func TestForLocksLeavesDialingToTheCaller(t *testing.T) {
	t.Parallel()
	own := func(string, *net.Dialer, *tls.Config) (net.Conn, error) { return nil, errors.New("own") }
	for name, option := range map[string]rueidis.ClientOption{
		"Timeout": {Dialer: net.Dialer{Timeout: time.Minute}},
		"DialFn":  {DialFn: own},
	} {
		if ForLocks(option).DialCtxFn != nil {
			t.Errorf("%s: got a DialCtxFn of ours, want none", name)
		}
	}
}
