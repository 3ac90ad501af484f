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

// urlParameters are those that rueidis.ParseURL knows, and three of our own. It ignores all others,
// including a misspelled master_set.
var urlParameters = []string{
	"addr", "client_cache", "client_name", "db", "dial_timeout",
	"master_set", "max_retries", "protocol", "skip_verify", "write_timeout",
	"sentinel_username", "sentinel_password", "server_name",
}

// errBadURL quotes no part of the URL, unlike the parsers' errors, because that part may be a
// password.
var errBadURL = fmt.Errorf("%w: the server's URL makes no sense; it looks like "+
	"redis://user:password@host:6379/0, and special characters in it are percent-encoded", store.ErrInvalidOption)

// ParseURL returns the server's options from a URL, if all parts of the URL are understood.
// Otherwise the error is ErrInvalidOption.
func ParseURL(text string) (rueidis.ClientOption, error) {
	server, err := rueidis.ParseURL(text)
	parameters, ok := understood(text)
	if err != nil || !ok || !addOurs(&server, parameters) {
		return rueidis.ClientOption{}, errBadURL
	}
	return server, nil
}

// addOurs adds the parameters that rueidis does not know. It reports false for one that would have no effect.
// Sentinels and the servers that they name have certificates of their own. So each is known by its
// address, and not by that of the first sentinel.
func addOurs(server *rueidis.ClientOption, parameters url.Values) (ok bool) {
	server.Sentinel.Username, server.Sentinel.Password = parameters.Get("sentinel_username"), parameters.Get("sentinel_password")
	isSentinel, name := server.Sentinel.MasterSet != "", parameters.Get("server_name")
	if config := server.TLSConfig; config != nil && (isSentinel || name != "") {
		config.ServerName = name
	}
	return (isSentinel || server.Sentinel.Username+server.Sentinel.Password == "") &&
		(server.Sentinel.Username == "" || server.Sentinel.Password != "") && (server.TLSConfig != nil || name == "")
}

// understood returns the parameters, and whether a valid URL has been parsed as it was meant. If a password contains a
// bare '#', '?' or '/', the text before that character becomes host and port, which errors would
// show.
func understood(text string) (parameters url.Values, ok bool) {
	_, server, ok := strings.Cut(text, "://") // without it, this would be the host
	if !ok {
		return nil, false
	}
	if end := strings.IndexAny(server, "/?#"); end >= 0 && strings.ContainsAny(server[end:], "@#") {
		return nil, false
	}
	_, query, _ := strings.Cut(server, "?")
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return nil, false
	}
	for name := range parameters {
		if !slices.Contains(urlParameters, name) {
			return nil, false
		}
	}
	for _, addr := range parameters["addr"] { // without a port, rueidis would use the first host again
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, false
		}
	}
	return parameters, true
}
