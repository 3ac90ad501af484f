// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
)

// Locks are deleted with the best command that the server has; what it lacks is
// found out once, and said once.
func TestLocksAreDeletedWithWhatTheServerHas(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args             []string
		want, lacks, not string
	}{
		"before 8.4":     {nil, "cmdstat_unlink", "lacks or forbids DELEX", "cmdstat_del:"},
		"without UNLINK": {[]string{"--rename-command", "UNLINK", ""}, "cmdstat_del", `lacks or forbids DELEX" "deletes with"=DEL`, "cmdstat_unlink:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sv := ownServer(t, tt.args...)
			var log kit.Journal
			st := sv.store(t, WithLogger(log.Logger(slog.LevelInfo)))
			c := join(t, st)
			for range 5 {
				c.Hold("key", "a")
				if !c.release(store.ReleaseRequest{Key: "key", Owner: "a"}).WasHeld || sv.Number(t, "EXISTS", sv.lockKey("key")) != 0 {
					t.Fatal("Release: the key is held or there still, want it gone")
				}
				c.Hold("key", "a")
				if held, err := c.session.Force(t.Context(), "key", 0); !held || err != nil || sv.Number(t, "EXISTS", sv.lockKey("key")) != 0 {
					t.Fatalf("Force: got %v, %v; want the key gone", held, err)
				}
			}
			stats := sv.Do(t, "INFO", "commandstats")
			if !strings.Contains(stats, tt.want+":calls=10,") || strings.Contains(stats, tt.not) {
				t.Errorf("commands: got %s, want 10 of %s and no %s", stats, tt.want, tt.not)
			}
			if errors := sv.Do(t, "INFO", "errorstats"); strings.Count(errors, "count=") > 3 {
				t.Errorf("errors: got %s, want few", errors)
			}
			st.log.Close()
			if got := log.String(); strings.Count(got, "the server lacks or forbids") != 1 || !strings.Contains(got, tt.lacks) {
				t.Errorf("log: got %q, want it to say once %q", got, tt.lacks)
			}
		})
	}
}

// A server that has DELEX, as miniredis does, is asked to compare once more while
// it deletes.
func TestDELEXComparesTheValue(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	var asked []string
	mini.Server().SetPreHook(func(_ *miniserver.Peer, command string, args ...string) bool {
		if command == "DELEX" {
			asked = args // of a script, which has the server to itself
		}
		return false
	})
	sv := onServer(t, rueidis.ClientOption{InitAddress: []string{mini.Addr()}, ForceSingleClient: true})
	var log kit.Journal
	st := sv.store(t, WithLogger(log.Logger(slog.LevelInfo)))
	c := join(t, st)
	c.Hold("key", "a")
	value := sv.Do(t, "GET", sv.lockKey("key"))
	if !c.release(store.ReleaseRequest{Key: "key", Owner: "a"}).WasHeld {
		t.Error("Release: got WasHeld false, want true")
	}
	if mini.Exists(sv.lockKey("key")) {
		t.Error("the key is there still, want it gone")
	}
	if got, want := strings.Join(asked, "|"), sv.lockKey("key")+"|IFEQ|"+value; got != want {
		t.Errorf("DELEX: got %q, want %q", got, want)
	}
	st.log.Close()
	if got := log.String(); got != "" {
		t.Errorf("log: got %q, want nothing: nothing is lacking", got)
	}
}
