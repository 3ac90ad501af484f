// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A scheme is how URLs begin, and the store that they name.
type scheme struct {
	parameters []string // ours; the client library never sees them
	open       func(context.Context, location, settings) (*Store, error)
	migrate    func(context.Context, location) error // nil: there are no tables
}

// schemes has them by name.
var schemes = func() map[string]*scheme {
	redis := &scheme{[]string{"prefix", "counter_ttl", "failover_grace"}, openRedis, nil}
	springRedis := &scheme{[]string{"registry", "lock_type", "poll_interval"}, openSpringRedis, nil}
	sql := &scheme{[]string{"prefix", "poll_interval", "notifications"}, openSQL, migrateSQL}
	springSQL := &scheme{[]string{"prefix", "region", "poll_interval", "spring_version", "repository_ttl"}, openSpringSQL, migrateSpringSQL}
	zookeeper := &scheme{[]string{"session_timeout", "tick_time", "short_ttls"}, openZooKeeper, nil}
	return map[string]*scheme{
		"redis": redis, "rediss": redis, "unix": redis,
		"postgres": sql, "postgresql": sql, "mysql": sql, "mariadb": sql,
		"zk": zookeeper, "zks": zookeeper,
		"spring+redis": springRedis, "spring+rediss": springRedis, "spring+unix": springRedis,
		"spring+postgres": springSQL, "spring+postgresql": springSQL, "spring+mysql": springSQL, "spring+mariadb": springSQL,
	}
}()

// A location is a URL in parts.
type location struct {
	scheme     *scheme
	client     string            // how the URL of the client library begins: without spring+
	rest       string            // after ://, without our parameters
	parameters map[string]string // ours
}

// parse takes a URL apart. Its errors quote no part of the URL that may be a password.
func parse(text string) (l location, err error) {
	name, rest, found := strings.Cut(text, "://")
	l.scheme = schemes[name]
	if !found || l.scheme == nil {
		return l, badURL("it begins with none of %s", strings.Join(slices.Sorted(maps.Keys(schemes)), "://, ")+"://")
	}
	l.client = strings.TrimPrefix(name, "spring+")
	// A bare '/', '?' or '#' would end the password, whose rest would be taken for a path or a parameter.
	if end := strings.IndexAny(rest, "/?#"); end >= 0 && strings.ContainsAny(rest[end:], "@#") {
		return l, badURL("a special character in its user or password, or an @ or # in a parameter, is not percent-encoded")
	}
	l.parameters = make(map[string]string)
	l.rest, err = l.takeOurs(rest)
	return l, err
}

// takeOurs moves our parameters out of a URL. It leaves the text of all others as it is.
func (l *location) takeOurs(rest string) (string, error) {
	base, query, _ := strings.Cut(rest, "?")
	var others []string
	for part := range strings.SplitSeq(query, "&") {
		rawName, rawValue, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil || !slices.Contains(l.scheme.parameters, name) {
			if part != "" {
				others = append(others, part)
			}
			continue
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return "", badURL("the value of the parameter %s can't be read", name)
		}
		if _, twice := l.parameters[name]; twice {
			return "", badURL("the parameter %s is given twice", name)
		}
		l.parameters[name] = value
	}
	if len(others) > 0 {
		base += "?" + strings.Join(others, "&")
	}
	return base, nil
}

func badURL(format string, args ...any) error {
	return fmt.Errorf("%w: the store's URL: %s", store.ErrInvalidOption, fmt.Sprintf(format, args...))
}

// options returns the options that the URL's parameters are. The table has what makes one of a value.
func options[O any](l location, table map[string]func(string) (O, error)) (opts []O, err error) {
	for _, name := range slices.Sorted(maps.Keys(l.parameters)) {
		make, ok := table[name]
		if !ok {
			continue // it is no option, and read elsewhere
		}
		opt, err := make(l.parameters[name])
		if err != nil {
			return nil, badURL("the parameter %s: %v", name, err)
		}
		opts = append(opts, opt)
	}
	return opts, nil
}

// text makes an option of a value as it is.
func text[O any](make func(string) O) func(string) (O, error) {
	return func(value string) (O, error) { return make(value), nil }
}

// duration makes an option of a duration.
func duration[O any](make func(time.Duration) O) func(string) (O, error) {
	return func(value string) (opt O, err error) {
		d, err := time.ParseDuration(value)
		if err != nil {
			return opt, fmt.Errorf("%q is no duration, such as 500ms or 10s", value)
		}
		return make(d), nil
	}
}

// choice makes an option of one of several words.
func choice[O any](words map[string]O) func(string) (O, error) {
	return func(value string) (O, error) {
		opt, ok := words[value]
		if !ok {
			return opt, fmt.Errorf("%q is none of %s", value, strings.Join(slices.Sorted(maps.Keys(words)), ", "))
		}
		return opt, nil
	}
}
