// SPDX-License-Identifier: Apache-2.0

package redisconn

import "regexp"

// A scriptError is a server's error without what only names our script.
type scriptError struct {
	text  string
	reply error
}

func (e *scriptError) Error() string { return e.text }
func (e *scriptError) Unwrap() error { return e.reply }

// A server adds to an error inside a script where that was: the script's hash, and a line. Before Redis 7
// this comes first, and since then last.
var (
	scriptFirst = regexp.MustCompile(` \(call to f_[0-9a-f]+\): (@user_script: ?\d+: ?)+-?`)
	scriptLast  = regexp.MustCompile(` script:( [0-9a-f]+)?(,? on)?( @user_script:\d+)?\.?$`)
)

// withoutScript returns the error in words that mean something to a user.
func withoutScript(text string, reply error) error {
	short := scriptLast.ReplaceAllString(scriptFirst.ReplaceAllString(text, ": "), "")
	if short == text {
		return reply
	}
	return &scriptError{short, reply}
}
