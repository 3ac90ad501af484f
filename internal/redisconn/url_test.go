// SPDX-License-Identifier: Apache-2.0

package redisconn_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	got, err := redisconn.ParseURL("redis://user:pass%40word@host1:26379/3?addr=host2:26379&master_set=main")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.InitAddress) != 2 || got.Username != "user" || got.Password != "pass@word" || got.SelectDB != 3 || got.Sentinel.MasterSet != "main" {
		t.Errorf("got %+v, want two sentinels, user and password, database 3 and the set main", got)
	}
	for url, serverName := range map[string]string{
		"rediss://host:6380":                                          "host",
		"rediss://10.0.0.1:6380?server_name=host":                     "host",
		"rediss://host1:26379?addr=host2:26379&master_set=main":       "", // each by its address
		"rediss://host1:26379?master_set=main&server_name=redis.test": "redis.test",
	} {
		if got, err := redisconn.ParseURL(url); err != nil || got.TLSConfig == nil || got.TLSConfig.ServerName != serverName {
			t.Errorf("%s: got %+v, error %v; want TLS and the server's name %q", url, got.TLSConfig, err, serverName)
		}
	}
	got, err = redisconn.ParseURL("redis://user:secret@host1:26379?master_set=main&sentinel_username=watcher&sentinel_password=pass%40word")
	if err != nil || got.Username != "user" || got.Password != "secret" || got.Sentinel.Username != "watcher" || got.Sentinel.Password != "pass@word" {
		t.Errorf("user of the sentinels: got %+v, error %v", got, err)
	}
}

// A parameter that would have no effect is refused.
func TestAParameterInVainIsRefused(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"redis://host?sentinel_password=secret", "redis://host?sentinel_username=watcher",
		"redis://host?master_set=main&sentinel_username=watcher", "redis://host?server_name=host",
	} {
		if _, err := redisconn.ParseURL(url); !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("%s: got %v, want ErrInvalidOption", url, err)
		}
	}
}

// A password with a character that ought to be encoded ends before that character. A parser takes
// what is in front for a host and a port, or for a database.
func TestABadURLKeepsItsPasswordSecret(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	for _, url := range []string{
		"", "redis://user:" + password + "@host:port", "redis://user:" + password + "/x@host", "redis://user:1/" + password + "@host",
		"redis://user:" + password + "%zz@host", "http://user:" + password + "@host", "user:" + password + "@host",
		"redis://host?db=" + password, "redis://host?dial_timeout=" + password, "redis://:1#" + password + "@127.0.0.1:6379",
		"redis://" + password + ":1?x@127.0.0.1:6379", "redis://" + password + ":1#", "unix:///" + password + "?x@/run/redis.sock",
		"redis:" + password + "@127.0.0.1:6379", "redis://127.0.0.1:1?addr=user:" + password + "@host", "redis://host?master=" + password,
	} {
		_, err := redisconn.ParseURL(url)
		if !errors.Is(err, store.ErrInvalidOption) {
			t.Errorf("%q: got %v, want ErrInvalidOption", url, err)
		} else if strings.Contains(err.Error(), password) {
			t.Errorf("%q: the password shows: %v", url, err)
		}
	}
}

// An error says which part of the URL makes no sense.
func TestABadURLSaysWhatIsBad(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"": "begin with", "host:6379": "begin with", "http://host": "begin with", "REDIS://host": "begin with",
		"redis://:p#w@host": "percent-encoded", "redis://host?foo=1": "means nothing", "redis://host?addr=host2": "no port",
		"redis://host?server_name=host": "no effect", "redis://host:port": "can't be read", "redis://host/x": "can't be read",
		"redis://host?db=%zz": "can't be read",
	} {
		if _, err := redisconn.ParseURL(url); !errors.Is(err, store.ErrInvalidOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want ErrInvalidOption that says %q", url, err, want)
		}
	}
}

// FuzzParseURL: a URL is one of a server, or an error that does not quote it.
func FuzzParseURL(f *testing.F) {
	for _, url := range []string{
		"redis://user:password@host:6379/0", "rediss://host", "redis://host1:26379?addr=host2:26379&master_set=main",
		"unix:///run/redis/redis.sock", "redis://:p%zz@host", "redis://host:port/x", "redis://[::1", "host:6379", "redis://h?db=x", "://",
		"redis://h?foo=1", "redis://h?addr=h", "redis://h?server_name=h", "redis://:p#@h",
	} {
		f.Add(url)
	}
	known := make(map[string]bool)
	for _, bad := range []string{"://", "redis://:p#@h", "redis://h?foo=1", "redis://h?addr=h", "redis://h?server_name=h", "redis://h?db=x"} {
		_, err := redisconn.ParseURL(bad)
		known[err.Error()] = true
	}
	f.Fuzz(func(t *testing.T, url string) {
		option, err := redisconn.ParseURL(url)
		switch {
		case err != nil && !known[err.Error()]:
			t.Errorf("%q: got %v, want words that any such URL has", url, err)
		case err == nil && len(option.InitAddress) == 0:
			t.Errorf("%q: got no address and no error", url)
		}
	})
}
