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
	"unicode"

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
	redis := &scheme{names(redisOptions), openRedis, nil}
	springRedis := &scheme{append(names(springRedisOptions), registry), openSpringRedis, nil}
	sql := &scheme{names(sqlOptions), openSQL, migrateSQL}
	springSQL := &scheme{names(springSQLOptions), openSpringSQL, migrateSpringSQL}
	zookeeper := &scheme{names(zookeeperOptions), openZooKeeper, nil}
	return map[string]*scheme{
		"redis": redis, "rediss": redis, "unix": redis,
		"postgres": sql, "postgresql": sql, "mysql": sql, "mariadb": sql,
		"zk": zookeeper, "zks": zookeeper,
		"spring+redis": springRedis, "spring+rediss": springRedis, "spring+unix": springRedis,
		"spring+postgres": springSQL, "spring+postgresql": springSQL, "spring+mysql": springSQL, "spring+mariadb": springSQL,
	}
}()

// A table has what makes an option of a parameter's value.
type table[O any] map[string]func(string) (O, error)

func names[O any](t table[O]) []string { return slices.Sorted(maps.Keys(t)) }

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
	name = strings.ToLower(name)
	l.scheme = schemes[name]
	if !found || l.scheme == nil {
		return l, badURL("it begins with none of %s", strings.Join(slices.Sorted(maps.Keys(schemes)), "://, ")+"://")
	}
	l.client = strings.TrimPrefix(name, "spring+")
	if strings.ContainsFunc(rest, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return l, badURL("it has a space, a line break or the like")
	}
	// A bare '/', '?' or '#' would end the password, whose rest would be taken for a path or a parameter.
	end := strings.IndexAny(rest, "/?#")
	if end >= 0 && strings.ContainsAny(rest[end:], "@#") {
		return l, badURL("a special character in its user or password, or an @ or # in a parameter, is not percent-encoded")
	}
	l.parameters = make(map[string]string)
	if l.rest, err = l.takeOurs(rest); err != nil {
		return l, err
	}
	return l, l.checkHosts()
}

// checkHosts refuses a URL without a host. Client libraries would take this machine, so that each would lock by itself.
func (l *location) checkHosts() error {
	base, query, _ := strings.Cut(l.rest, "?")
	authority, _, _ := strings.Cut(base, "/")
	if l.client == "unix" || strings.HasPrefix(l.client, "postgres") && authority == "" && (strings.Contains(query, "host=") || strings.Contains(query, "service=")) {
		return nil
	}
	for host := range strings.SplitSeq(authority[strings.LastIndexByte(authority, '@')+1:], ",") {
		if host == "" || host[0] == ':' {
			return badURL("a host is missing")
		}
	}
	return nil
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

// options returns the options that the URL's parameters are.
func options[O any](l location, t table[O]) (opts []O, err error) {
	for _, name := range slices.Sorted(maps.Keys(l.parameters)) {
		make, ok := t[name]
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
