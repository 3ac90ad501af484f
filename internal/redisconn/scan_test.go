// SPDX-License-Identifier: Apache-2.0

package redisconn_test

import (
	"slices"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// scanner is a client of a server that has three pages of keys, the second of them
// empty, and answers any other cursor with an error. (miniredis itself has one page.)
func scanner(t *testing.T) *redisconn.Conn {
	t.Helper()
	mini := miniredis.RunT(t)
	mini.Server().SetPreHook(func(c *server.Peer, command string, args ...string) bool {
		if command != "SCAN" {
			return false
		}
		if !slices.Equal(args[1:], []string{"MATCH", "lock:*", "COUNT", "500"}) {
			c.WriteError("ERR unexpected arguments of SCAN")
			return true
		}
		next, names := map[string]string{"0": "7", "7": "18446744073709551615", "18446744073709551615": "0"}[args[0]],
			map[string][]string{"0": {"lock:a", "lock:b"}, "18446744073709551615": {"lock:c"}}[args[0]]
		if next == "" {
			c.WriteError("ERR invalid cursor")
			return true
		}
		c.WriteLen(2)
		c.WriteBulk(next)
		c.WriteStrings(names)
		return true
	})
	client, err := rueidis.NewClient(redisconn.ForLocks(rueidis.ClientOption{InitAddress: []string{mini.Addr()}, ForceSingleClient: true}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	conn, err := redisconn.Share(client)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestPages(t *testing.T) {
	t.Parallel()
	conn := scanner(t)
	var names []string
	pages := 0
	for page, err := range redisconn.Pages(t.Context(), conn, "lock:*") {
		if err != nil {
			t.Fatal(err)
		}
		names, pages = append(names, page...), pages+1
	}
	if want := []string{"lock:a", "lock:b", "lock:c"}; !slices.Equal(names, want) || pages != 3 {
		t.Errorf("got %q on %d pages, want %q on 3", names, pages, want)
	}
	for page, err := range redisconn.Pages(t.Context(), conn, "lock:*") {
		if len(page) != 2 || err != nil {
			t.Errorf("the first page: got %q, %v, want two names", page, err)
		}
		break // and nobody asks for another
	}
}

func TestPagesEndWithAnError(t *testing.T) {
	t.Parallel()
	var errs []error
	for _, err := range redisconn.Pages(t.Context(), scanner(t), "other:*") {
		errs = append(errs, err)
	}
	if len(errs) != 1 || errs[0] == nil {
		t.Errorf("got %v, want one error", errs)
	}
}
