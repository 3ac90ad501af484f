// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/redis/go-redis/v9/push"
)

// isDefault reports whether a field has the value that go-redis itself writes into the options of a
// client.
func isDefault(field reflect.Value) bool {
	switch value := field.Interface().(type) {
	case func(*redis.Options) *redis.Client:
		return reflect.ValueOf(value).Pointer() == reflect.ValueOf(redis.NewClient).Pointer()
	case *push.Processor, *push.VoidProcessor:
		return true
	}
	return false
}

// ofFailoverClient is what go-redis has for an address in a failover client's own options.
const ofFailoverClient = "FailoverClient"

var networks = []string{"", "tcp", "tcp4", "tcp6", "unix"}

// A refusal makes an error for a field of the options that it is named after.
type refusal string

func (r refusal) because(field, reason string) error {
	return &OptionError{string(r), field, reason}
}

// check refuses values that can't be carried, of fields that all options have.
func (r refusal) check(o *redis.Options) error {
	switch {
	case o.DB < 0:
		return r.because("DB", "is negative")
	case o.Protocol > 3:
		return r.because("Protocol", "is neither 2 nor 3")
	case o.DialTimeout < 0:
		return r.because("DialTimeout", "is negative: a dial without a limit could hang for ever")
	case strings.ContainsAny(o.IdentitySuffix, " \r\n"):
		return r.because("IdentitySuffix", "has a space, which no server accepts")
	case o.Dialer == nil && !slices.Contains(networks, o.Network):
		return r.because("Network", "is none of tcp, tcp4, tcp6 and unix, and there is no Dialer")
	case o.MaintNotificationsConfig != nil && o.MaintNotificationsConfig.Mode == maintnotifications.ModeEnabled:
		return r.because("MaintNotificationsConfig", "insists on notifications that the store does not use: its Mode may be auto or disabled")
	case o.CredentialsProvider != nil || o.CredentialsProviderContext != nil:
		return nil
	}
	return r.checkUser("Username", o.Username, o.Password)
}

// checkUser refuses a user whom go-redis would leave out: the server would take the client for its
// default user.
func (r refusal) checkUser(field, user, password string) error {
	if user != "" && password == "" {
		return r.because(field, "has no effect in go-redis without a password: set the password, or leave the user out")
	}
	return nil
}

// checkAddresses refuses what can't be an address, unless a dialer gives it a meaning. No address is
// quoted, because it may be a URL with a password.
func (r refusal) checkAddresses(field string, addresses []string, dialer bool) error {
	if r == "redis.UniversalOptions" {
		field = "Addrs"
	}
	if len(addresses) == 0 {
		return r.because(field, "has no address")
	}
	for _, address := range addresses {
		if _, port, err := net.SplitHostPort(address); !dialer && (err != nil || port == "") {
			return r.because(field, "has an address that is not host:port")
		}
	}
	return nil
}
