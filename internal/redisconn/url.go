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

// Why a URL is bad. None of these texts quotes a part of the URL, unlike the parsers' errors, because
// that part may be a password.
const (
	badScheme    = "it does not begin with redis://, rediss:// or unix://"
	badCharacter = "a special character in its user or password is not percent-encoded"
	badParameter = "it has a parameter that means nothing"
	badAddr      = "an addr has no port"
	badEffect    = "a parameter would have no effect: sentinel_password needs master_set, sentinel_username needs sentinel_password, and server_name needs rediss://"
	badValue     = "its host, port, database or the value of a parameter can't be read"
)

func badURL(why string) error {
	return fmt.Errorf("%w: the server's URL: %s; it looks like redis://user:password@host:6379/0", store.ErrInvalidOption, why)
}

// ParseURL returns the server's options from a URL, if all parts of the URL are understood.
// Otherwise the error is ErrInvalidOption, and says which part is not.
func ParseURL(text string) (rueidis.ClientOption, error) {
	parameters, why := understood(text)
	if why != "" {
		return rueidis.ClientOption{}, badURL(why)
	}
	server, err := rueidis.ParseURL(text)
	if err != nil {
		return rueidis.ClientOption{}, badURL(badValue)
	}
	if !addOurs(&server, parameters) {
		return rueidis.ClientOption{}, badURL(badEffect)
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

// understood returns the parameters, and why a URL has not been parsed as it was meant, or "". If a password contains a
// bare '#', '?' or '/', the text before that character becomes host and port, which errors would
// show.
func understood(text string) (parameters url.Values, why string) {
	scheme, server, _ := strings.Cut(text, "://") // without it, rueidis would take the scheme for the host
	if !slices.Contains([]string{"redis", "rediss", "unix"}, scheme) {
		return nil, badScheme
	}
	if end := strings.IndexAny(server, "/?#"); end >= 0 && strings.ContainsAny(server[end:], "@#") {
		return nil, badCharacter
	}
	_, query, _ := strings.Cut(server, "?")
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return nil, badValue
	}
	for name := range parameters {
		if !slices.Contains(urlParameters, name) {
			return nil, badParameter
		}
	}
	for _, addr := range parameters["addr"] { // without a port, rueidis would use the first host again
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return nil, badAddr
		}
	}
	return parameters, ""
}
