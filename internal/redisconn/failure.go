// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
)

// Classify translates an error of rueidis into asynclock's, with the cause wrapped.
func Classify(err error) error {
	var reply *rueidis.RedisError
	var network *net.OpError
	var without *unsent
	switch {
	case errors.As(err, &without) && errors.As(without.cause, &reply):
		return NotSent(Refused(reply.Error(), reply)) // to how the connection introduces itself
	case without != nil:
		// The cause may be the end of a context, but not of the caller's.
		return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	case errors.As(err, &network) && network.Op == "dial", errors.Is(err, rueidis.ErrNoSlot):
		// This comes first, because a dial that takes too long looks like the end of a context.
		return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &reply):
		return Refused(reply.Error(), reply)
	}
	// It is unknown whether the command was sent. This includes rueidis.ErrClosing: commands that
	// are under way to the old primary fail with it when Sentinel names another one.
	return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
}

// NotSent returns the error of a call that was certainly not sent. It is one that says so.
func NotSent(err error) error {
	for _, means := range []error{store.ErrUnreachable, store.ErrDenied, store.ErrInvalidOption, store.ErrClosed} {
		if errors.Is(err, means) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
}

// replyCodes maps error replies to errors by their first word.
var replyCodes = map[string]error{
	"LOADING":     store.ErrUnreachable, // reading its data
	"BUSY":        store.ErrUnreachable, // in a long script
	"READONLY":    store.ErrUnreachable, // a replica: a failover is under way
	"MASTERDOWN":  store.ErrUnreachable,
	"NOREPLICAS":  store.ErrUnreachable, // min-replicas-to-write
	"OOM":         store.ErrUnreachable,
	"MISCONF":     store.ErrUnreachable, // can't save to disk
	"CLUSTERDOWN": store.ErrUnreachable,
	"TRYAGAIN":    store.ErrUnreachable, // the slot is being moved
	"MOVED":       store.ErrUnreachable, // redirected too often
	"ASK":         store.ErrUnreachable,
	"UNKILLABLE":  store.ErrUnreachable,
	"NOPERM":      store.ErrDenied,
	"NOAUTH":      store.ErrDenied,
	"WRONGPASS":   store.ErrDenied,
	"DENIED":      store.ErrDenied, // by the protected mode
	"WRONGTYPE":   store.ErrForeignData,
}

// replyTexts does the same for replies without a code of their own.
var replyTexts = []struct {
	text  string
	means error
}{
	{"max number of clients reached", store.ErrUnreachable},
	{"asynclock: the slot is being moved", store.ErrUnreachable}, // by a script of ours, before its first write
	{"non local key", store.ErrOutcomeUnknown},                   // inside a script: its slot is being moved
	{"Client names cannot contain", store.ErrInvalidOption},      // HELLO and CLIENT SETNAME
	{"DB index is out of range", store.ErrInvalidOption},         // SELECT
	{"SELECT is not allowed", store.ErrInvalidOption},            // in a Cluster
	{"Protocol error: unauthenticated", store.ErrDenied},         // a command of more than ten words, or a long one
	{"invalid password", store.ErrDenied},                        // AUTH, before 6.2
	{"AUTH <password> called without", store.ErrDenied},          // a password where there is none
	{"can't run this command", store.ErrDenied},                  // ACL, inside a script
	{"No permissions to access a key", store.ErrDenied},          // 7.2, inside a script
	{"can't access at least one of the keys", store.ErrDenied},   // 7.0, inside a script
	{"keys mentioned in the command arguments", store.ErrDenied}, // 6.2, inside a script
	{"ACL failure in script", store.ErrDenied},                   // Valkey, inside a script
}

// Refused translates the server's error, which is without a leading ERR, with the cause wrapped. Since Redis 7, an error inside a script begins with
// its own code. Before that, the code was somewhere in the text of an ERR about a script. rueidis
// removes the ERR.
func Refused(text string, cause error) error {
	code, _, _ := strings.Cut(text, " ")
	if means := replyCodes[code]; means != nil {
		return fmt.Errorf("%w: %w", means, withoutScript(text, cause))
	}
	if strings.HasPrefix(text, "Error running script") {
		for word := range strings.FieldsSeq(text) {
			if means := replyCodes[strings.TrimPrefix(word, "-")]; means != nil {
				return fmt.Errorf("%w: %w", means, withoutScript(text, cause))
			}
		}
	}
	for _, known := range replyTexts {
		if strings.Contains(text, known.text) {
			return fmt.Errorf("%w: %w", known.means, withoutScript(text, cause))
		}
	}
	if before, _, quotes := strings.Cut(text, ", with args beginning with"); quotes {
		// For an unknown command the server quotes the arguments, which include an owner. This
		// cause is therefore not wrapped.
		return errors.New("redis: unexpected error reply: " + before)
	}
	return fmt.Errorf("redis: unexpected error reply: %w", withoutScript(text, cause))
}

// Refusal returns the text of the server's error, if err is one.
func Refusal(err error) (text string, ok bool) {
	reply, ok := rueidis.IsRedisErr(err)
	if !ok {
		return "", false
	}
	return reply.Error(), true
}

// IsUnknownCommand reports whether the server is too old for a command. rueidis removes the ERR
// before the text.
func IsUnknownCommand(err error) bool {
	var reply *rueidis.RedisError
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), "unknown command")
}
