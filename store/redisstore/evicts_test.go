// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

// A server that deletes keys gives a held lock away, so the log says once that it may.
func TestAnEvictingServerIsNamedInTheLog(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args  []string
		lines int
	}{
		"all keys":       {[]string{"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}, 1},
		"keys with TTLs": {[]string{"--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"}, 1},
		"none":           {[]string{"--maxmemory", "100mb"}, 0},
		"never full":     {[]string{"--maxmemory-policy", "allkeys-lru"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var written kit.Journal
			st := ownServer(t, tt.args...).newStore(t, WithoutFailoverGrace(), WithLogger(written.Logger(slog.LevelWarn)))
			for _, id := range []string{"a", "b"} {
				up := make(chan struct{}, 1)
				session, err := st.Open(id, func(e store.Event) {
					if e.Kind == store.EventResync {
						up <- struct{}{}
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				<-up
				if err := session.Close(t.Context()); err != nil { // waits for what follows the event
					t.Fatal(err)
				}
			}
			st.log.Close()
			if got := strings.Count(written.String(), "maxmemory-policy="); got != tt.lines {
				t.Errorf("log: got %d warnings, want %d:\n%s", got, tt.lines, written.String())
			}
		})
	}
}
