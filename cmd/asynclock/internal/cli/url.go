// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// urlParameters are those that rueidis.ParseURL knows. It ignores all others, and
// so what a misspelled master_set was to say.
var urlParameters = []string{
	"addr", "client_cache", "client_name", "db", "dial_timeout",
	"master_set", "max_retries", "protocol", "skip_verify", "write_timeout",
}

// errBadURL quotes nothing of the URL, as the parsers' errors do: that may be a
// password.
var errBadURL = errors.New("the server's URL makes no sense; it looks like " +
	"redis://user:password@host:6379/0, and special characters in it are percent-encoded")

// parseURL returns what a URL says of the server, if all of it can be understood.
func parseURL(text string) (rueidis.ClientOption, error) {
	server, err := rueidis.ParseURL(text)
	if err != nil || !understood(text) {
		return rueidis.ClientOption{}, errBadURL
	}
	return server, nil
}

// understood reports whether a URL that parses means what it says to its parser:
// a password with a bare '#', '?' or '/' makes a host and a port of what is before
// it, which errors would show.
func understood(text string) bool {
	_, server, ok := strings.Cut(text, "://") // without, the host would be this one
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
	for _, addr := range parameters["addr"] { // without a port, it would be the first host again
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return false
		}
	}
	return true
}
