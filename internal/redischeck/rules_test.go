// SPDX-License-Identifier: Apache-2.0

package redischeck

import (
	"maps"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

// The answers of a server that is as it should be, without what no rule reads.
var healthy = map[string]string{
	"INFO server":      "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n",
	"INFO replication": "# Replication\r\nrole:master\r\nconnected_slaves:2\r\nmin_slaves_good_slaves:2\r\n",
	"INFO memory":      "# Memory\r\nused_memory:1000000\r\nmaxmemory:100000000\r\nmaxmemory_policy:noeviction\r\n",
	"INFO stats":       "# Stats\r\nevicted_keys:0\r\n",
	"INFO persistence": "# Persistence\r\nloading:0\r\nasync_loading:0\r\nrdb_last_bgsave_status:ok\r\naof_enabled:1\r\naof_last_write_status:ok\r\n",
	"CLUSTER INFO":     "cluster_state:ok\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:0\r\n",
}

const denied = "-ERR The user executing the script can't run this command or subcommand"

// A change makes a healthy server another one. It replaces a text in one of its answers, or all of the answer if
// before is empty.
type change struct{ question, before, after string }

func serverWith(t *testing.T, changes []change) *server {
	t.Helper()
	s := &server{said: maps.Clone(healthy)}
	for _, c := range changes {
		text := strings.Replace(s.said[c.question], c.before, c.after, 1)
		if c.before == "" {
			text = c.after
		}
		if text == s.said[c.question] {
			t.Fatalf("%s has no %q", c.question, c.before)
		}
		s.said[c.question] = text
	}
	return s
}

type ruleCase struct {
	d       Deployment
	changes []change
	verdict store.Verdict
	fact    string // a part of it
	fix     string // a part of it; empty: there is none
}

var guarded = Deployment{Guarded: true}

func testRule(t *testing.T, check string, rule func(Deployment, *server) store.Finding, cases map[string]ruleCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := rule(c.d, serverWith(t, c.changes))
			if got.Check != check || got.Verdict != c.verdict || !strings.Contains(got.Fact, c.fact) || !strings.Contains(got.Fix, c.fix) || (got.Fix == "") != (c.fix == "") {
				t.Errorf("got %+v, want %v of %s with %q and %q", got, c.verdict, check, c.fact, c.fix)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	with := func(before, after string) []change { return []change{{"INFO server", before, after}} }
	testRule(t, "server", version, map[string]ruleCase{
		"alone":           {guarded, nil, store.VerdictOK, "Redis 7.0.15, standalone", ""},
		"behind Sentinel": {Deployment{Sentinel: true}, nil, store.VerdictOK, "behind Sentinel", ""},
		"in a Cluster":    {Deployment{Cluster: true}, with("standalone", "cluster"), store.VerdictOK, "in a Cluster", ""},
		"the oldest":      {guarded, with("7.0.15", "6.2.0"), store.VerdictOK, "Redis 6.2.0", ""},
		"Valkey":          {guarded, with("7.0.15", "7.2.4\r\nvalkey_version:8.1.0"), store.VerdictOK, "Valkey 8.1.0", ""},
		"too old":         {guarded, with("7.0.15", "6.0.16"), store.VerdictFail, "Redis 6.0.16", "6.2"},
		"far too old":     {guarded, with("7.0.15", "5.4.0"), store.VerdictFail, "Redis 5.4.0", "6.2"},
		"unknown":         {guarded, with("7.0.15", "nightly"), store.VerdictNote, "does not tell", ""},
		"half known":      {guarded, with("7.0.15", "7.x"), store.VerdictNote, "does not tell", ""},
		"a Cluster's":     {guarded, with("standalone", "cluster"), store.VerdictWarn, "node of a Cluster", "as a Cluster"},
		"without rights":  {guarded, with("", denied), store.VerdictNote, "may not ask for INFO server", "+info|server"},
		"unsupported":     {guarded, with("", "-ERR section (server) is not supported"), store.VerdictNote, "does not answer", ""},
	})
}

func TestReplication(t *testing.T) {
	with := func(before, after string) []change { return []change{{"INFO replication", before, after}} }
	const good = "min_slaves_good_slaves:2\r\n"
	alone := "role:master\r\nconnected_slaves:0\r\n"
	replica := "role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:down\r\n"
	testRule(t, "replication", replication, map[string]ruleCase{
		"needs replicas":      {guarded, nil, store.VerdictOK, "2 replicas, of which 2 keep up: if min-replicas-to-write is more than 2, it refuses locks", ""},
		"one is behind":       {guarded, with(good, "min_slaves_good_slaves:1\r\n"), store.VerdictNote, "of which 1 keeps up: if min-replicas-to-write is more than 1", "links"},
		"all are behind":      {guarded, with(good, "min_slaves_good_slaves:0\r\n"), store.VerdictFail, "refuses locks", "replicas"},
		"needs none":          {guarded, with(good, ""), store.VerdictWarn, "there is the grace", "min-replicas-to-write 1"},
		"nor has a grace":     {Deployment{}, with(good, ""), store.VerdictWarn, "two may hold a key", "min-replicas-to-write 1"},
		"without a grace":     {Deployment{}, nil, store.VerdictWarn, "two may hold a key", "tokens"},
		"alone":               {Deployment{}, with("", alone), store.VerdictOK, "without replicas", ""},
		"a replica":           {guarded, with("", replica), store.VerdictFail, "a replica of 10.0.0.1:6379, which takes no locks. Its link to the primary is down", "primary"},
		"of an unknown role":  {guarded, with("role:master", "role:arbiter"), store.VerdictNote, "does not tell", ""},
		"without rights":      {guarded, with("", denied), store.VerdictNote, "may not ask", "+info|replication"},
		"without rights, 7.2": {guarded, with("", "-NOPERM User x has no permissions to run the 'info' command"), store.VerdictNote, "may not ask", "+info|replication"},
	})
}

func TestEviction(t *testing.T) {
	evicts := change{"INFO memory", "noeviction", "volatile-lru"}
	endless := change{"INFO memory", "maxmemory:100000000", "maxmemory:0"}
	evicted := change{"INFO stats", "evicted_keys:0", "evicted_keys:7"}
	silent := change{"INFO stats", "", denied}
	testRule(t, "eviction", eviction, map[string]ruleCase{
		"none":                  {guarded, nil, store.VerdictOK, "noeviction", ""},
		"may":                   {guarded, []change{evicts}, store.VerdictWarn, "volatile-lru: a full server deletes locks, which are free then. It has deleted 0 keys", "noeviction"},
		"does":                  {guarded, []change{evicts, evicted}, store.VerdictFail, "It has deleted 7 keys", "noeviction"},
		"may, and says no more": {guarded, []change{evicts, silent}, store.VerdictWarn, "an unknown number", "noeviction"},
		"did":                   {guarded, []change{evicted}, store.VerdictWarn, "has deleted 7 keys", "noeviction"},
		"did, is never full":    {guarded, []change{evicts, endless, evicted}, store.VerdictWarn, "has deleted 7 keys", "noeviction"},
		"is never full":         {guarded, []change{evicts, endless}, store.VerdictNote, "volatile-lru", "noeviction"},
		"says no more":          {guarded, []change{silent}, store.VerdictNote, "noeviction. The user may not ask for INFO stats", "+info|stats"},
		"has no policy":         {guarded, []change{{"INFO memory", "maxmemory_policy:noeviction", ""}}, store.VerdictNote, "does not tell", ""},
		"without rights":        {guarded, []change{{"INFO memory", "", denied}}, store.VerdictNote, "may not ask for INFO memory", "+info|memory"},
	})
}

func TestMemory(t *testing.T) {
	with := func(before, after string) []change { return []change{{"INFO memory", before, after}} }
	testRule(t, "memory", memory, map[string]ruleCase{
		"room":        {guarded, nil, store.VerdictOK, "1.0 MB used of 100.0 MB", ""},
		"some room":   {guarded, with("used_memory:1000000", "used_memory:90000000"), store.VerdictOK, "90.0 MB used", ""},
		"little room": {guarded, with("used_memory:1000000", "used_memory:90000001"), store.VerdictWarn, "90.0 MB used of 100.0 MB. A full server", "maxmemory"},
		"no room":     {guarded, with("used_memory:1000000", "used_memory:100000000"), store.VerdictFail, "100.0 MB used of 100.0 MB. A full server", "maxmemory"},
		"but buffers": {guarded, with("used_memory:1000000", "used_memory:100000000\r\nmem_not_counted_for_evict:1"), store.VerdictWarn, "100.0 MB used", "maxmemory"},
		"makes room":  {guarded, with("used_memory:1000000\r\nmaxmemory:100000000\r\nmaxmemory_policy:noeviction", "used_memory:100000001\r\nmaxmemory:100000000\r\nmaxmemory_policy:allkeys-lru"), store.VerdictWarn, "100.0 MB used", "maxmemory"},
		"no limit":    {guarded, with("maxmemory:100000000", "maxmemory:0"), store.VerdictOK, "without a limit", ""},
	})
	if got := memory(guarded, serverWith(t, with("", denied))); got != (store.Finding{}) {
		t.Errorf("without rights: got %+v, want nothing, for eviction says it", got)
	}
}

func TestPersistence(t *testing.T) {
	with := func(pairs ...string) (all []change) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, change{"INFO persistence", pairs[i], pairs[i+1]})
		}
		return all
	}
	const on, off = "aof_enabled:1", "aof_enabled:0"
	testRule(t, "persistence", persistence, map[string]ruleCase{
		"logs, with a grace":     {guarded, nil, store.VerdictOK, "an append-only file. Against leases", ""},
		"with a grace":           {guarded, with(on, off), store.VerdictOK, "no append-only file. Against leases", ""},
		"logs":                   {Deployment{}, nil, store.VerdictNote, "unless appendfsync is always", "appendfsync always"},
		"neither":                {Deployment{}, with(on, off), store.VerdictWarn, "a restart forgets leases", "appendonly yes"},
		"loads":                  {guarded, with("\nloading:0", "\nloading:1"), store.VerdictFail, "reading its data", "Wait"},
		"loads a primary's data": {guarded, with("async_loading:0", "async_loading:1"), store.VerdictFail, "reading its data", "Wait"},
		"can't log":              {guarded, with("aof_last_write_status:ok", "aof_last_write_status:err"), store.VerdictFail, "refuses locks", "room"},
		"could not log":          {guarded, with("aof_last_write_status:ok", "aof_last_write_status:err", on, off), store.VerdictOK, "no append-only file", ""},
		"can't save":             {guarded, with("rdb_last_bgsave_status:ok", "rdb_last_bgsave_status:err"), store.VerdictWarn, "snapshot has failed", "stop-writes-on-bgsave-error"},
		"says nothing":           {guarded, with("", "# Persistence\r\n"), store.VerdictNote, "does not tell", ""},
		"without rights":         {guarded, with("", denied), store.VerdictNote, "may not ask", "+info|persistence"},
	})
}

// The log warns of the same servers as a finding about what a full server deletes.
func TestEvictionPolicy(t *testing.T) {
	for name, tt := range map[string]struct {
		answer change
		want   string
	}{
		"evicts":         {change{InfoMemory, "noeviction", "allkeys-lfu"}, "allkeys-lfu"},
		"does not":       {change{InfoMemory, "used_memory", "used"}, ""},
		"is never full":  {change{InfoMemory, "maxmemory:100000000\r\nmaxmemory_policy:noeviction", "maxmemory:0\r\nmaxmemory_policy:allkeys-lru"}, ""},
		"without rights": {change{InfoMemory, "", denied}, ""},
	} {
		if got := EvictionPolicy(serverWith(t, []change{tt.answer}).said[InfoMemory]); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
