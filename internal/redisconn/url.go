// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/store"
)

// urlParameters are those that rueidis.ParseURL knows. It ignores all others, including a
// misspelled master_set.
var urlParameters = []string{
	"addr", "client_cache", "client_name", "db", "dial_timeout",
	"master_set", "max_retries", "protocol", "skip_verify", "write_timeout",
}

// errBadURL quotes no part of the URL, unlike the parsers' errors, because that part may be a
// password.
var errBadURL = fmt.Errorf("%w: the server's URL makes no sense; it looks like "+
	"redis://user:password@host:6379/0, and special characters in it are percent-encoded", store.ErrInvalidOption)

// ParseURL returns the server's options from a URL, if all parts of the URL are understood.
// Otherwise the error is ErrInvalidOption.
func ParseURL(text string) (rueidis.ClientOption, error) {
	server, err := rueidis.ParseURL(text)
	if err != nil || !understood(text) {
		return rueidis.ClientOption{}, errBadURL
	}
	return server, nil
}

// understood reports whether a valid URL has been parsed as it was meant. If a password contains a
// bare '#', '?' or '/', the text before that character becomes host and port, which errors would
// show.
func understood(text string) bool {
	_, server, ok := strings.Cut(text, "://") // without it, this would be the host
	if !ok {
		return false
	}
	if end := strings.IndexAny(server, "/?#"); end >= 0 && strings.ContainsAny(server[end:], "@#") {
		return false
	}
	_, query, _ := strings.Cut(server, "?")
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return false
	}
	for name := range parameters {
		if !slices.Contains(urlParameters, name) {
			return false
		}
	}
	for _, addr := range parameters["addr"] { // without a port, rueidis would use the first host again
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return false
		}
	}
	return true
}
