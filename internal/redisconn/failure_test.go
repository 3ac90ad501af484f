// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit/fuzzreply"
	"github.com/asynclock/asynclock-go/store"
)

// What servers answer when they can't do what was asked, as 6.2, 7.0 and 7.2
// phrase it, before rueidis takes the ERR away.
func TestErrorRepliesMeanSomething(t *testing.T) {
	mini := miniredis.RunT(t)
	client, err := rueidis.NewClient(ForLocks(rueidis.ClientOption{InitAddress: []string{mini.Addr()}, ForceSingleClient: true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	for text, want := range map[string]error{
		"LOADING Redis is loading the dataset in memory":                                                                                                store.ErrUnreachable,
		"READONLY You can't write against a read only replica.":                                                                                         store.ErrUnreachable,
		"READONLY You can't write against a read only replica. script: abc, on @user_script:9.":                                                         store.ErrUnreachable,
		"ERR asynclock: the slot is being moved script: abc, on @user_script:9.":                                                                        store.ErrUnreachable,
		"ERR Script attempted to access a non local key in a cluster node script: abc, on @user_script:9.":                                              store.ErrOutcomeUnknown,
		"ERR Error running script (call to f_abc): @user_script:9: @user_script: 9: Lua script attempted to access a non local key in a cluster node":   store.ErrOutcomeUnknown,
		"CLUSTERDOWN The cluster is down":                                                                                                               store.ErrUnreachable,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                                                                       store.ErrUnreachable,
		"NOREPLICAS Not enough good replicas to write.":                                                                                                 store.ErrUnreachable,
		"MISCONF Redis is configured to save RDB snapshots":                                                                                             store.ErrUnreachable,
		"OOM command not allowed when used memory > 'maxmemory'.":                                                                                       store.ErrUnreachable,
		"BUSY Redis is busy running a script.":                                                                                                          store.ErrUnreachable,
		"MASTERDOWN Link with MASTER is down":                                                                                                           store.ErrUnreachable,
		"ERR max number of clients reached":                                                                                                             store.ErrUnreachable,
		"ERR Error running script (call to f_abc): @user_script:9: -OOM command not allowed when used memory > 'maxmemory'.":                            store.ErrUnreachable,
		"ERR Error running script (call to f_abc): @user_script:9: @user_script: 9: -READONLY You can't write":                                          store.ErrUnreachable,
		"ERR Error running script (call to f_abc): @user_script:9: WRONGTYPE Operation against a key":                                                   store.ErrForeignData,
		"ERR Error running script (call to f_abc): @user_script:9: @user_script: 9: The user executing the script can't run this command or subcommand": store.ErrDenied,
		"ERR The user executing the script can't run this command or subcommand script: abc, on @user_script:9.":                                        store.ErrDenied,
		"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: abc":                        store.ErrDenied,
		"ACL failure in script: User x has no permissions to run the 'set' command script: on @user_script:33.":                                         store.ErrDenied,
		"NOPERM this user has no permissions to run the 'evalsha' command":                                                                              store.ErrDenied,
		"ERR Protocol error: unauthenticated multibulk length":                                                                                          store.ErrDenied,
		"NOAUTH Authentication required.":                                                                                                               store.ErrDenied,
		"WRONGPASS invalid username-password pair or user is disabled.":                                                                                 store.ErrDenied,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                                                             store.ErrForeignData,
		"ERR something new": nil,
	} {
		reply := client.Do(t.Context(), client.B().Eval().Script("return {err=ARGV[1]}").Numkeys(0).Arg(text).Build()).Error()
		if _, ok := rueidis.IsRedisErr(reply); !ok {
			t.Fatalf("%q: got %v, want it back as an error reply", text, reply)
		}
		got := Classify(reply)
		if want == nil {
			for _, known := range []error{store.ErrUnreachable, store.ErrOutcomeUnknown, store.ErrDenied, store.ErrForeignData} {
				if errors.Is(got, known) {
					t.Errorf("%q: got %v, want no particular error", text, got)
				}
			}
		} else if !errors.Is(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
		if !errors.Is(got, reply) {
			t.Errorf("%q: got %v, want the cause wrapped", text, got)
		}
		if strings.Contains(got.Error(), "user_script") || strings.Contains(got.Error(), "abc") {
			t.Errorf("%q: got %v, want no script's name in it", text, got)
		}
	}
}

func TestConnectionErrorsMeanSomething(t *testing.T) {
	for _, tt := range []struct{ err, want error }{
		{&net.OpError{Op: "dial", Err: io.EOF}, store.ErrUnreachable},
		{fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Err: io.EOF}), store.ErrUnreachable},
		{&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, store.ErrUnreachable}, // its own time limit
		{&net.OpError{Op: "read", Err: io.EOF}, store.ErrOutcomeUnknown},
		{io.EOF, store.ErrOutcomeUnknown},
		{rueidis.ErrClosing, store.ErrOutcomeUnknown},
		{rueidis.ErrNoSlot, store.ErrUnreachable},
		{context.Canceled, context.Canceled},
		{context.DeadlineExceeded, context.DeadlineExceeded},
	} {
		if got := Classify(tt.err); !errors.Is(got, tt.want) {
			t.Errorf("%v: got %v, want %v", tt.err, got, tt.want)
		}
	}
}

// rueidis itself closes a client when Sentinel names another primary. That is not the same as our
// own Close.
func TestOnlyOurOwnCloseIsErrClosed(t *testing.T) {
	var c Conn
	if got := c.Failure(rueidis.ErrClosing); errors.Is(got, store.ErrClosed) || !errors.Is(got, store.ErrOutcomeUnknown) {
		t.Errorf("ErrClosing while open: got %v, want ErrOutcomeUnknown", got)
	}
	if !c.Close() || c.Close() {
		t.Error("Close: want true the first time only")
	}
	if got := c.Failure(rueidis.ErrClosing); !errors.Is(got, store.ErrClosed) {
		t.Errorf("ErrClosing once closed: got %v, want ErrClosed", got)
	}
}

// Nothing was sent when a first connection fails: the error is never that the outcome is unknown.
func TestWhatIsNotOpenedIsUnreachable(t *testing.T) {
	t.Parallel()
	var c Conn
	c.dialed.tried.Store(true)
	for _, err := range []error{context.DeadlineExceeded, errors.New("odd"), &unsent{errors.New("a dialer's")}, fmt.Errorf("x509: %w", net.ErrClosed)} {
		if got := c.unopened(err); !errors.Is(got, store.ErrUnreachable) || errors.Is(got, store.ErrOutcomeUnknown) {
			t.Errorf("%v: got %v, want ErrUnreachable", err, got)
		}
	}
	if _, err := Open(rueidis.ClientOption{}); !errors.Is(err, store.ErrInvalidOption) {
		t.Errorf("no address: got %v, want ErrInvalidOption", err)
	}
}

// A handshake, and a dialer of the application's, may fail with any error. The end of a context of theirs is not that of
// the caller's.
func TestADialThatFailsHasSentNothing(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{errors.New("tls: certificate required"), context.DeadlineExceeded} {
		var c Conn
		dial := c.dialed.dialer(func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return nil, cause })
		_, err := dial(t.Context(), "127.0.0.1:1", new(net.Dialer), nil)
		if got := c.Failure(err); !errors.Is(got, store.ErrUnreachable) || errors.Is(got, store.ErrOutcomeUnknown) {
			t.Errorf("%v: got %v, want ErrUnreachable", cause, got)
		}
	}
}

// A script's hash and line say nothing to a user.
func TestErrorsDoNotNameTheScript(t *testing.T) {
	const hash = "0b3f1c2d4e5f60718293a4b5c6d7e8f901234567"
	for text, want := range map[string]string{
		"OOM command not allowed. script: " + hash + ", on @user_script:1.":                        "OOM command not allowed.",
		"Error running script (call to f_" + hash + "): @user_script:9: -OOM command not allowed.": "Error running script: OOM command not allowed.",
		"LOADING Redis is loading": "LOADING Redis is loading",
	} {
		m, err := fuzzreply.Message(append([]byte{'e', byte(len(text))}, text...))
		if err != nil {
			t.Fatal(err)
		}
		if got := Classify(m.Error()).Error(); got != store.ErrUnreachable.Error()+": "+want {
			t.Errorf("got %q, want %q at its end", got, want)
		}
	}
}

// FuzzClassify: whatever a server says, it is an error of asynclock's or an
// unexpected one, and quotes no arguments of ours.
func FuzzClassify(f *testing.F) {
	const secret = "AAAAAAAAAAAAAAAAAAAAAA.3f"
	f.Add("OOM command not allowed when used memory > 'maxmemory'.")
	f.Add("Error running script (call to f_abc): @user_script:9: -READONLY You can't write")
	f.Add("unknown command 'EVALSHA', with args beginning with: '" + secret + "' 'x'")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		text = text[:min(len(text), 127)] // what fits into the form of fuzzreply
		m, err := fuzzreply.Message(append([]byte{'e', byte(len(text))}, text...))
		if err != nil {
			t.Fatal(err)
		}
		reply := m.Error()
		got := Classify(reply)
		if got == nil || got.Error() == "" {
			t.Fatalf("%q: got %v, want an error that says something", text, got)
		}
		if errors.Is(got, store.ErrOutcomeUnknown) {
			t.Errorf("%q: got %v, but the server has answered", text, got)
		}
		if IsUnknownCommand(reply) && strings.Contains(text, ", with args beginning with: '"+secret) && strings.Contains(got.Error(), secret) {
			t.Errorf("%q: got %v, which quotes an owner", text, got)
		}
	})
}
