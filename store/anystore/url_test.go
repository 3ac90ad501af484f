// SPDX-License-Identifier: Apache-2.0

package anystore

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

// TestBadURLs: a URL that is not understood is refused before anything is dialed, and its password is not told.
func TestBadURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                                       "begins with none of mariadb://, mysql://, postgres://",
		"localhost:6379":                                         "begins with none of",
		"http://u:s3cret@host":                                   "begins with none of",
		"spring+zk://host":                                       "begins with none of",
		"redis://u:s3cret/x@host":                                "percent-encoded",
		"postgres://u:s3cret#@host/db":                           "percent-encoded",
		"mysql://u:s3cret?a@host/db":                             "percent-encoded",
		"redis://host?prefix=a&prefix=b":                         "the parameter prefix is given twice",
		"redis://host?prefix=%zz":                                "the parameter prefix can't be read",
		"redis://host?prefx=a":                                   "has a parameter that means nothing",
		"redis://host?counter_ttl=day":                           `counter_ttl: "day" is no duration`,
		"redis://host?failover_grace=no":                         `failover_grace: "no" is no duration`,
		"redis://u:s3cret@host:port":                             "can't be read",
		"spring+redis://host":                                    "the parameter registry is missing",
		"spring+redis://host?registry=r&lock_type=x":             `lock_type: "x" is none of pubsub, spin`,
		"postgres://u:s3cret@host:port/db":                       "can't be read",
		"postgres://host/db?sslmode=maybe":                       "can't be read",
		"postgres://host/db?notifications=on":                    `"on" is none of off`,
		"postgres://host/db?poll_interval=1":                     `"1" is no duration`,
		"mysql://u:s3cret@host:port/db":                          "can't be read",
		"mysql://host/db?timeout=soon":                           "can't be read",
		"spring+mysql://host/db?spring_version=5":                `"5" is none of 6, 7`,
		"zk://u:s3cret@host/root?x=y":                            `the parameter "x" means nothing to ZooKeeper`,
		"redis://:6379":                                          "a host is missing",
		"redis://u:s3cret@:6379":                                 "a host is missing",
		"rediss:///0":                                            "a host is missing",
		"mysql://u:s3cret@/db":                                   "a host is missing",
		"postgres:///db":                                         "a host is missing",
		"postgres://host,/db":                                    "a host is missing",
		"zk://h1,,h2":                                            "a host is missing",
		"redis:// host":                                          "it has a space",
		"mysql://u:s3cret@host/db?ssl-mode=REQUIRED":             "this driver has tls=true",
		"postgres://u:s3cret@host/db?sslrootcert=/none":          "open /none: no such file",
		"zk://u:s3c%zzret@host":                                  "can't be read",
		"zk://host/ro%zzot":                                      "can't be read",
		"zk://:s3cret@host":                                      "user must not be empty",
		"zk://host/root?session_timeout=1ms":                     "session timeout 1ms is outside",
		"spring+postgres://host/db?region=%20":                   "region",
		"mysql://host/db?prefix=" + strings.Repeat("x", 40):      "prefix",
		"redis://host?failover_grace=off&failover_grace=off&x=y": "given twice",
	} {
		for what, err := range map[string]error{"Open": opening(t, url), "Migrate": Migrate(t.Context(), url)} {
			if what == "Migrate" && err == nil && !strings.Contains(url, "sql://") && !strings.Contains(url, "postgres://") {
				continue // without tables there is nothing to do
			}
			if !errors.Is(err, store.ErrInvalidOption) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s: got %v, want ErrInvalidOption with %q", what, url, err, want)
			} else if strings.Contains(err.Error(), "s3c") {
				t.Errorf("%s of %s: got %v, which has the password", what, url, err)
			}
		}
	}
}

func opening(t *testing.T, url string) error {
	t.Helper()
	st, err := Open(t.Context(), url, WithoutLogger())
	if err == nil {
		st.Close()
	}
	return err
}

// TestGoodURLs have a host, or say otherwise where the server is.
func TestGoodURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"REDIS://host", "unix:///run/redis.sock", "postgres:///db?host=/run/postgresql", "postgresql:///?service=app",
		"postgres://me@h1:5432,h2/db", "mysql://[::1]/db", "zk://h1:2181,h2/a/b", "redis://:p%40ss@host?addr=h2:6379",
	} {
		if l, err := parse(url); err != nil || l.client != strings.ToLower(l.client) {
			t.Errorf("%s: got %v, want no error", url, err)
		}
	}
}

// TestMySQLConfig: a URL's parts reach the driver, which has another spelling.
func TestMySQLConfig(t *testing.T) {
	t.Parallel()
	for rest, want := range map[string][4]string{
		"me:p%40ss%2Fword@db.example/my%2Fapp?tls=true": {"me", "p@ss/word", "db.example:3306", "my/app"},
		"[::1]:3307":                             {"", "", "[::1]:3307", ""},
		"me@db.example:3307/d?loc=Europe/Berlin": {"me", "", "db.example:3307", "d"},
	} {
		config, err := mysqlConfig(rest)
		if err != nil {
			t.Fatal(err)
		}
		if got := [4]string{config.User, config.Passwd, config.Addr, config.DBName}; got != want {
			t.Errorf("%s: got %q, want %q", rest, got, want)
		}
		if strings.Contains(rest, "tls") && (config.TLS == nil || config.TLS.ServerName != "db.example") {
			t.Errorf("%s: got %+v, want the server's name in TLS", rest, config.TLS)
		}
	}
}

func TestEnsemble(t *testing.T) {
	t.Parallel()
	for rest, want := range map[string]struct {
		servers string
		options int
	}{
		"h1:2181,h2":             {"h1:2181 h2", 0},
		"h1/":                    {"h1", 0},
		"h1,[::1]:2182/a/b":      {"h1 [::1]:2182", 1},
		"me:p%40ss@h1:2181/a%20": {"h1:2181", 2},
	} {
		servers, opts, err := ensemble(rest)
		if err != nil || strings.Join(servers, " ") != want.servers || len(opts) != want.options {
			t.Errorf("%s: got %q, %d options, %v, want %+v", rest, servers, len(opts), err, want)
		}
	}
}

// FuzzURL: of each URL, our parameters are taken and all others stay, and no error has the password.
func FuzzURL(f *testing.F) {
	for name := range schemes {
		f.Add(name+"://user:", "@host:1/x?prefix=a&b=c&region=d")
	}
	const secret = "a1s2d3f4g5"
	f.Fuzz(func(t *testing.T, before, after string) {
		l, err := parse(before + secret + after)
		if err != nil {
			if strings.Contains(err.Error(), secret) && !strings.Contains(before, "?") {
				t.Errorf("got %v, which has the password", err)
			}
			return
		}
		for part := range strings.SplitSeq(l.rest[strings.IndexByte(l.rest+"?", '?'):], "&") {
			name, _, _ := strings.Cut(strings.TrimPrefix(part, "?"), "=")
			if slices.Contains(l.scheme.parameters, name) {
				t.Errorf("got %q left, want %v taken", l.rest, slices.Sorted(maps.Keys(l.parameters)))
			}
		}
		_, _, _ = ensemble(l.rest)
		_, _ = mysqlConfig(l.rest)
	})
}
