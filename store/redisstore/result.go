// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
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

// integer returns the integer that the result is.
func (r *Result) integer() (n int64, ok bool) {
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

// text returns the text that the result is.
func (r *Result) text() (text string, ok bool) {
	if r.given != nil {
		text, ok = r.given.value.(string)
		return text, ok
	}
	text, err := r.result.ToString()
	return text, err == nil
}

// textIfAny returns the text that the result is. It reports false for nothing. Its error is for
// Driver.Failure.
func (r *Result) textIfAny() (text string, ok bool, err error) {
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

// list returns the list that the result is, or an error for Driver.Failure.
func (r *Result) list() (items, error) {
	if r.given == nil {
		messages, err := r.result.ToArray()
		return items{messages: messages}, err
	}
	values, ok := r.given.value.([]any)
	if r.given.err == nil && !ok {
		return items{}, errReply
	}
	return items{values: values}, r.given.err
}

// refusal returns the server's error that the result is.
func (r *Result) refusal() (text string, ok bool) {
	if r.given != nil {
		return r.given.refusal, r.given.refusal != ""
	}
	return redisconn.Refusal(r.result.Error())
}

// items are a list that is read from its beginning. One of its slices is empty.
type items struct {
	messages []rueidis.RedisMessage
	values   []any
}

// more reports whether there is another item.
func (l *items) more() bool { return len(l.messages) > 0 || len(l.values) > 0 }

// integer reads an item that has to be one.
func (l *items) integer() (n int64, ok bool) {
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

// string reads an item that has to be a text.
func (l *items) string() (text string, ok bool) {
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
