// SPDX-License-Identifier: Apache-2.0

package redischeck

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/asynclock/asynclock-go/store"
)

// version is the check of what the server is. Redis has the commands of the scripts since 6.2.
func version(d Deployment, s *server) store.Finding {
	f, missing := s.info("server", "server", "its version")
	if f == nil {
		return missing
	}
	name, number := "Redis", f["redis_version"]
	if valkey := f["valkey_version"]; valkey != "" {
		name, number = "Valkey", valkey
	}
	mode := cmp.Or(f["redis_mode"], "in a mode that it does not tell")
	switch {
	case d.Cluster:
		mode = "in a Cluster"
	case d.Sentinel:
		mode = "behind Sentinel"
	}
	found := store.Finding{Check: "server", Fact: fmt.Sprintf("%s %s, %s.", name, number, mode)}
	switch old, known := isOld(f["redis_version"]); {
	case !known:
		found.Verdict, found.Fact = store.VerdictNote, "The server does not tell its version."
	case old:
		found.Verdict, found.Fix = store.VerdictFail, "Update the server to Redis 6.2 or newer, or to Valkey."
	case f["redis_mode"] == "cluster" && !d.Cluster:
		found.Verdict = store.VerdictWarn
		found.Fact = fmt.Sprintf("%s %s, a node of a Cluster that is used as a single server: its failover is not followed.", name, number)
		found.Fix = "Open the store as a Cluster, with the addresses of several nodes."
	}
	return found
}

// isOld reports whether a version of Redis is older than 6.2.
func isOld(number string) (old, known bool) {
	parts := strings.SplitN(number, ".", 3)
	if len(parts) < 2 {
		return false, false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err != nil || err2 != nil {
		return false, false
	}
	return major < 6 || major == 6 && minor < 2, true
}

// replication is the check of what a failover may cost. INFO has min_slaves_good_slaves only if min-replicas-to-write is
// set, and does not say to how many.
func replication(d Deployment, s *server) store.Finding {
	f, missing := s.info("replication", "replication", "whether this is a primary")
	if f == nil {
		return missing
	}
	found := store.Finding{Check: "replication"}
	good, needed := f["min_slaves_good_slaves"]
	replicas := f.Number("connected_slaves")
	switch {
	case f["role"] == "slave":
		found.Verdict = store.VerdictFail
		found.Fact = fmt.Sprintf("This is a replica of %s:%s, which takes no locks. Its link to the primary is %s.", f["master_host"], f["master_port"], f["master_link_status"])
		found.Fix = "Use the address of the primary, or those of the sentinels with master_set."
	case f["role"] != "master":
		found.Verdict, found.Fact = store.VerdictNote, "The server does not tell whether it is a primary."
	case needed && good == "0":
		found.Verdict = store.VerdictFail
		found.Fact = "No replica keeps up, and min-replicas-to-write is set: the primary refuses locks."
		found.Fix = "Start the replicas, or look at their links to the primary."
	case replicas > 0 && !needed:
		found.Verdict = store.VerdictWarn
		found.Fact = fmt.Sprintf("A primary with %s and min-replicas-to-write 0: cut off and replaced, it goes on granting. %s",
			count(replicas, "replica"), afterFailover(d))
		found.Fix = "Set min-replicas-to-write 1 and min-replicas-max-lag 5."
	case replicas > 0 && !d.Guarded:
		found.Verdict, found.Fact = store.VerdictWarn, fmt.Sprintf("A primary with %s. %s", count(replicas, "replica"), afterFailover(d))
		found.Fix = "Have the resource refuse smaller tokens (docs/fences.md)."
	case replicas > 0:
		found.Fact = fmt.Sprintf("A primary with %s, of which %s up: if min-replicas-to-write is more than %s, it refuses locks. %s",
			count(replicas, "replica"), keep(good), good, afterFailover(d))
		if f.Number("min_slaves_good_slaves") < replicas {
			found.Verdict, found.Fix = store.VerdictNote, "Look at the links of the others to the primary."
		}
	default:
		found.Fact = "A primary without replicas."
	}
	return found
}

func afterFailover(d Deployment) string {
	if d.Guarded {
		return "Against leases that a failover forgets there is the grace."
	}
	return "A failover may forget the latest leases, and two may hold a key then."
}

func keep(good string) string {
	if good == "1" {
		return "1 keeps"
	}
	return good + " keep"
}

func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// eviction is the check of whether the server may delete a lock.
func eviction(_ Deployment, s *server) store.Finding {
	f, missing := s.info("eviction", "memory", "whether it deletes locks when its memory is full")
	if f == nil {
		return missing
	}
	stats, unsaid := s.info("eviction", "stats", "how many keys were deleted so far")
	found := store.Finding{Check: "eviction", Fact: "No key is deleted: maxmemory-policy is noeviction."}
	policy, evicted := f.evicts(), stats.Number("evicted_keys")
	switch {
	case f["maxmemory_policy"] == "":
		found.Verdict, found.Fact = store.VerdictNote, "The server does not tell its maxmemory-policy."
	case policy != "" && f.Number("maxmemory") > 0:
		found.Verdict = store.VerdictWarn
		if evicted > 0 {
			found.Verdict = store.VerdictFail
		}
		found.Fact = fmt.Sprintf("maxmemory-policy is %s: a full server deletes locks, which are free then. It has deleted %s so far.", policy, howMany(stats, evicted))
		found.Fix = "Set maxmemory-policy noeviction."
	case evicted > 0:
		found.Verdict = store.VerdictWarn
		found.Fact = fmt.Sprintf("The server has deleted %s because its memory was full, locks perhaps.", count(evicted, "key"))
		found.Fix = "Set maxmemory-policy noeviction, and then run CONFIG RESETSTAT, which clears the count."
	case policy != "":
		found.Verdict = store.VerdictNote
		found.Fact = fmt.Sprintf("maxmemory-policy is %s, which deletes nothing as long as maxmemory is 0.", policy)
		found.Fix = "Set maxmemory-policy noeviction."
	case stats == nil:
		found.Verdict, found.Fact, found.Fix = unsaid.Verdict, found.Fact+" "+unsaid.Fact, unsaid.Fix
	}
	return found
}

func howMany(stats Facts, evicted int64) string {
	if stats == nil {
		return "an unknown number of keys"
	}
	return count(evicted, "key")
}

// memory is the check of whether there is room. There is no finding if eviction has said that the server does not tell.
func memory(_ Deployment, s *server) store.Finding {
	f, _ := s.info("memory", "memory", "")
	if f["used_memory"] == "" {
		return store.Finding{}
	}
	used, limit := f.Number("used_memory"), f.Number("maxmemory")
	found := store.Finding{Check: "memory", Fact: megabytes(used) + " used, without a limit (maxmemory 0)."}
	if limit > 0 {
		found.Fact = fmt.Sprintf("%s used of %s.", megabytes(used), megabytes(limit))
	}
	if limit > 0 && used > limit/10*9 {
		found.Verdict = store.VerdictWarn
		if f.evicts() == "" && used-f.Number("mem_not_counted_for_evict") >= limit {
			found.Verdict = store.VerdictFail
		}
		found.Fact += " A full server refuses locks."
		found.Fix = "Raise maxmemory, or shorten WithCounterTTL (docs/production.md says how much keys need)."
	}
	return found
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// persistence is the check of what a restart forgets, and of writes that a disk refuses.
func persistence(d Deployment, s *server) store.Finding {
	f, missing := s.info("persistence", "persistence", "what a restart forgets")
	if f == nil {
		return missing
	}
	found, logged := store.Finding{Check: "persistence"}, f["aof_enabled"] == "1"
	switch {
	case f["aof_enabled"] == "":
		found.Verdict, found.Fact = store.VerdictNote, "The server does not tell what it writes to its disk."
	case f["loading"] == "1" || f["async_loading"] == "1":
		found.Verdict, found.Fact = store.VerdictFail, "The server is reading its data, and takes no locks yet."
		found.Fix = "Wait until it has read them."
	case logged && f["aof_last_write_status"] == "err":
		found.Verdict, found.Fact = store.VerdictFail, "The last write to the append-only file has failed: the server refuses locks."
		found.Fix = "Make room on its disk."
	case f["rdb_last_bgsave_status"] == "err":
		found.Verdict, found.Fact = store.VerdictWarn, "The last snapshot has failed: with stop-writes-on-bgsave-error the server refuses locks."
		found.Fix = "Make room on its disk, or set stop-writes-on-bgsave-error no."
	case !logged && !d.Guarded:
		found.Verdict, found.Fact = store.VerdictWarn, "There is no append-only file and no failover grace: a restart forgets leases, and two may hold a key then."
		found.Fix = "Set appendonly yes and appendfsync always."
	case !d.Guarded:
		found.Verdict, found.Fact = store.VerdictNote, "There is an append-only file and no failover grace: a restart forgets leases, unless appendfsync is always."
		found.Fix = "Set appendfsync always."
	case !logged:
		found.Fact = "There is no append-only file. Against leases that a restart forgets there is the grace."
	default:
		found.Fact = "There is an append-only file. Against leases that it lacks there is the grace."
	}
	return found
}
