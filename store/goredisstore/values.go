// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"time"

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

// promises are what a store on a client of the application depends on, as go-redis has completed it.
type promises struct {
	contextTimeout bool
	retries        int
	read, write    time.Duration
	limiter        redis.Limiter
}

// checkPromises refuses a client that would make promises of the store untrue. It names all fields at once.
func (r refusal) checkPromises(p promises) error {
	var all []error
	refuse := func(is bool, field, why string) {
		if is {
			all = append(all, r.because(field, why))
		}
	}
	refuse(!p.contextTimeout, "ContextTimeoutEnabled", "is false, so commands would outlast their context: set true")
	refuse(p.retries > 0, "MaxRetries", "is not -1, so go-redis would send a script again whose answer was lost: set -1")
	refuse(p.retries < -1, "MaxRetries", "is below -1, so go-redis would send nothing: set -1")
	refuse(p.read <= 0, "ReadTimeout", "is no limit, so a call could hang for ever: leave it out, or set a limit")
	refuse(p.write <= 0, "WriteTimeout", "is no limit, so a call could hang for ever: leave it out, or set a limit")
	refuse(p.limiter != nil, "Limiter", "may refuse a renewal, and then a lease is lost: use a client without it")
	return errors.Join(all...)
}
