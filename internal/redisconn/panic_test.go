// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
)

// On a goroutine of ours, nobody but us could recover a panic of the client library or of a function that it calls.
func TestAPanicOfACallIsAnError(t *testing.T) {
	t.Parallel()
	secret := errors.Join(errors.New("MOVED 1 s3cret"), context.Canceled)
	for name, call := range map[string]func() int{
		"a value":  func() int { panic(secret) },
		"mistake":  func() int { var none []int; return none[len(secret.Error())] },
		"its exit": func() int { runtime.Goexit(); return 1 },
	} {
		place := make(chan struct{}, 1)
		got, err := Aside(t.Context(), place, call)
		if !errors.Is(Classify(err), store.ErrOutcomeUnknown) || got != 0 {
			t.Errorf("%s: got %d, %v; want ErrOutcomeUnknown", name, got, err)
		}
		if strings.Contains(err.Error(), "s3cret") || errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want nothing of the value", name, err)
		}
		if name == "mistake" && (!strings.Contains(err.Error(), "out of range") || !strings.Contains(err.Error(), "TestAPanicOfACallIsAnError.func2")) {
			t.Errorf("got %v, want what and where it was", err)
		}
		if len(place) != 0 {
			t.Errorf("%s: its place is taken for ever", name)
		}
	}
}

// Goroutines of ours call the functions that an application gives to rueidis for its connections.
func TestAPanicOfADialerIsAnError(t *testing.T) {
	t.Parallel()
	option := rueidis.ClientOption{
		InitAddress: []string{"127.0.0.1:1"}, ForceSingleClient: true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { panic("no route") },
	}
	if _, err := Open(option); !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "TestAPanicOfADialerIsAnError") {
		t.Errorf("a dialer: got %v, want ErrUnreachable", err)
	}
	option.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return nil, nil }
	if _, err := Open(option); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("a dialer without a connection: got %v, want ErrUnreachable", err)
	}
	s := &moodyServer{conns: make(map[net.Conn][]string)}
	option.DialCtxFn = s.dial
	option.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) { panic("no vault") }
	if _, err := Open(option); err == nil || !strings.Contains(err.Error(), "TestAPanicOfADialerIsAnError") {
		t.Errorf("a provider of credentials: got %v, want its panic as an error", err)
	}
}
