// SPDX-License-Identifier: Apache-2.0

package redisdriver

import (
	"errors"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// A Result is what a server answered to a script or to a GET: an integer, a text, nothing, a list of
// integers and texts, or an error. The zero one is nothing.
type Result struct {
	result rueidis.RedisResult // where given is nil
	given  *given
}

// given is a result by another library than rueidis.
type given struct {
	value   any    // int64, string, []any of these, or nil
	refusal string // what the server answered instead
	err     error  // for Driver.Failure
}

// RueidisResult returns a result by rueidis, as it is.
func RueidisResult(result rueidis.RedisResult) Result { return Result{result: result} }

// ValueResult returns a result of an int64, a string, nil, or a []any of int64 and string. The store
// treats any other value as a reply that no script of its own gives.
func ValueResult(value any) Result { return Result{given: &given{value: value}} }

// ErrorResult returns a result that is an error of the driver, which its Failure will be asked about.
func ErrorResult(err error) Result { return Result{given: &given{err: err}} }

// RefusalResult returns a result that is the server's error, as text without a leading "ERR ". Failure
// will be asked about err.
func RefusalResult(text string, err error) Result {
	return Result{given: &given{refusal: text, err: err}}
}

// errReply is an answer that no script of redisstore gives: something between the client and the server has changed it.
var errReply = errors.New("redisstore: unexpected reply")

// Integer returns the integer that the result is.
func (r *Result) Integer() (n int64, ok bool) {
	if r.given != nil {
		n, ok = r.given.value.(int64)
		return n, ok
	}
	if m, err := r.result.ToMessage(); err == nil && m.IsInt64() {
		n, err = m.ToInt64()
		return n, err == nil
	}
	return 0, false
}

// Text returns the text that the result is.
func (r *Result) Text() (text string, ok bool) {
	if r.given != nil {
		text, ok = r.given.value.(string)
		return text, ok
	}
	text, err := r.result.ToString()
	return text, err == nil
}

// TextIfAny returns the text that the result is. It reports false for nothing. Its error is for
// Driver.Failure.
func (r *Result) TextIfAny() (text string, ok bool, err error) {
	if r.given == nil {
		text, err = r.result.ToString()
		if rueidis.IsRedisNil(err) {
			return "", false, nil
		}
		return text, err == nil, err
	}
	text, ok = r.given.value.(string)
	if r.given.err == nil && !ok && r.given.value != nil {
		return "", false, errReply
	}
	return text, ok, r.given.err
}

// List returns the list that the result is, or an error for Driver.Failure.
func (r *Result) List() (Items, error) {
	if r.given == nil {
		messages, err := r.result.ToArray()
		return Items{messages: messages}, err
	}
	values, ok := r.given.value.([]any)
	if r.given.err == nil && !ok {
		return Items{}, errReply
	}
	return Items{values: values}, r.given.err
}

// Refusal returns the server's error that the result is.
func (r *Result) Refusal() (text string, ok bool) {
	if r.given != nil {
		return r.given.refusal, r.given.refusal != ""
	}
	return redisconn.Refusal(r.result.Error())
}

// Items are a list that is read from its beginning. One of its slices is empty.
type Items struct {
	messages []rueidis.RedisMessage
	values   []any
}

// More reports whether there is another item.
func (l *Items) More() bool { return len(l.messages) > 0 || len(l.values) > 0 }

// Integer reads an item that has to be one.
func (l *Items) Integer() (n int64, ok bool) {
	switch {
	case len(l.messages) > 0 && l.messages[0].IsInt64():
		n, _ = l.messages[0].ToInt64()
		l.messages, ok = l.messages[1:], true
	case len(l.values) > 0:
		n, ok = l.values[0].(int64)
		l.values = l.values[1:]
	}
	return n, ok
}

// Text reads an item that has to be a text.
func (l *Items) Text() (text string, ok bool) {
	switch {
	case len(l.messages) > 0 && l.messages[0].IsString():
		text, _ = l.messages[0].ToString()
		l.messages, ok = l.messages[1:], true
	case len(l.values) > 0:
		text, ok = l.values[0].(string)
		l.values = l.values[1:]
	}
	return text, ok
}
