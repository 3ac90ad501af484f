// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// check returns what a store finds by name, and the names in their order. Its looks at the clocks follow each other soon.
func check(t *testing.T, st *Store) (found map[string]store.Finding, names []string) {
	t.Helper()
	found = make(map[string]store.Finding)
	st.check(t.Context(), 200*time.Millisecond, func(f store.Finding) {
		names = append(names, f.Check)
		found[f.Check] = f
	})
	return found, names
}

// This store has no grace, so what a restart forgets counts.
func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want map[string]store.Verdict
	}{
		"forgetful": {[]string{"--appendonly", "no"}, map[string]store.Verdict{"persistence": store.VerdictWarn}},
		"logging":   {[]string{"--appendonly", "yes"}, map[string]store.Verdict{"persistence": store.VerdictNote}},
		"evicting": {
			[]string{"--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"},
			map[string]store.Verdict{"persistence": store.VerdictNote, "eviction": store.VerdictWarn},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sv := ownServer(t, tt.args...)
			found, names := check(t, sv.store(t, WithLockType(PubSubLock)))
			if want := []string{"server", "replication", "eviction", "memory", "persistence", "registry", "clock"}; !slices.Equal(names, want) {
				t.Errorf("checks: got %q, want %q", names, want)
			}
			for _, f := range found {
				if f.Verdict != tt.want[f.Check] {
					t.Errorf("got %+v, want %v", f, tt.want[f.Check])
				}
			}
			if got := found["registry"].Fact; !strings.Contains(got, `"`+sv.registry+`"`) || !strings.Contains(got, "PUB_SUB_LOCK") {
				t.Errorf("registry: got %q, want its key and type", got)
			}
		})
	}
}

// The rights in the package comment have no INFO. They are enough for notes that say so.
func TestCheckWithTheDocumentedRights(t *testing.T) {
	t.Parallel()
	found, _ := check(t, ownServer(t).addUser(t, "shop").store(t))
	for name, right := range map[string]string{"server": "server", "replication": "replication", "eviction": "memory", "persistence": "persistence"} {
		if f := found[name]; f.Verdict != store.VerdictNote || f.Fix != "ACL SETUSER <user> +info|"+right {
			t.Errorf("%s: got %+v, want a note and the right to INFO %s", name, f, right)
		}
	}
	if f := found["clock"]; f.Verdict != store.VerdictOK {
		t.Errorf("got %+v, want it ok", f)
	}
}

func TestCheckOfACluster(t *testing.T) {
	t.Parallel()
	sv := onServer(t, redistest.Option(t, "ASYNCLOCK_CLUSTER_URL"))
	found, _ := check(t, sv.store(t))
	if f := found["server"]; f.Verdict != store.VerdictOK || !strings.Contains(f.Fact, "and 2 more: ") || !strings.Contains(f.Fact, "in a Cluster") {
		t.Errorf("got %+v, want three servers of a Cluster", f)
	}
	if f := found["cluster"]; f.Verdict != store.VerdictOK {
		t.Errorf("got %+v, want it ok", f)
	}

	braced := *sv
	braced.registry = "{" + sv.registry + "}" // whose locks are all in one slot
	found, _ = check(t, braced.store(t))
	if f := found["server"]; f.Verdict != store.VerdictOK || strings.Contains(f.Fact, "more") {
		t.Errorf("got %+v, want the only server that has locks", f)
	}
}

func TestCheckOfNoStore(t *testing.T) {
	found, _ := check(t, new(Store))
	if f := found["server"]; f.Verdict != store.VerdictFail || len(found) != 1 {
		t.Errorf("got %+v, want nothing but a failure", found)
	}
}
