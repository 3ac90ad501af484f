// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"

	"github.com/redis/rueidis"
)

// A panicError is a panic of the client library, or of a function that the application has given it: a dialer, a hook, a
// provider of credentials. On a goroutine of ours, nobody else could recover it, and it would end the process.
type panicError struct {
	value any
	where string
}

// Error shows what the runtime says of a mistake, and of other values the type only: they may have secrets. It wraps
// nothing: what the value means to others does not say what became of the call.
func (e *panicError) Error() string {
	text := fmt.Sprintf("%T", e.value)
	if mistake, ok := e.value.(runtime.Error); ok {
		text = mistake.Error()
	}
	return "the client library, or a function given to it, panicked in " + e.where + ": " + text
}

// Recovered makes the error of a panic. It is to be deferred.
func Recovered(err *error) {
	if value := recover(); value != nil {
		*err = &panicError{value: value, where: panicked()}
	}
}

// panicked names the function that has panicked: the first below those of the runtime that say so.
func panicked() string {
	var callers [32]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for begun := false; ; {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if begun && !inRuntime || !more {
			return frame.Function
		}
		begun = begun || inRuntime
	}
}

// guarded makes errors of the panics of what rueidis calls for a connection.
func guarded(option rueidis.ClientOption) rueidis.ClientOption {
	option.DialCtxFn, option.DialFn = guardedDial(dialerOf(option)), nil
	if option.AuthCredentialsFn != nil {
		option.AuthCredentialsFn = guardedCredentials(option.AuthCredentialsFn)
	}
	return option
}

// guardedDial is a dial whose panic is an error of the dial.
func guardedDial(dial dialFunc) dialFunc {
	return func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (conn net.Conn, err error) {
		defer func() {
			if value := recover(); value != nil {
				err = &panicError{value: value, where: panicked()}
			}
		}()
		if conn, err = dial(ctx, address, dialer, encryption); conn == nil && err == nil {
			err = errNoConn
		}
		return conn, err
	}
}

var errNoConn = errors.New("redisconn: the dial function has returned neither a connection nor an error")

// guardedCredentials is a provider whose panic is its error. Without credentials nothing is sent.
func guardedCredentials(provide func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error)) func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
	return func(about rueidis.AuthCredentialsContext) (_ rueidis.AuthCredentials, err error) {
		defer func() {
			if err != nil {
				err = &unsent{err}
			}
		}()
		defer Recovered(&err)
		return provide(about)
	}
}
