// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/internal/redischeck"
	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// An old primary that follows the new one by a partial resync shows that the new one had read all that the old one
// had put into its stream: a replica that is ahead of its primary is resynchronized in full. docs/internals/grace.md
// says what this proves, and what it does not.

// evidencePatience is how long the replicas may take for an answer.
const evidencePatience = 5 * time.Second

// An asker asks a single server.
type asker interface {
	AskNode(ctx context.Context, address string) (redisconn.Node, error)
}

// judge adds to a grace why it began, and the evidence.
func (st *Store) judge(ctx context.Context, s *shardGrace) error {
	key := string(appendEpoch(nil, st.settings.prefix, s.buckets[0]))
	texts, err := st.ask(ctx, key, []string{"INFO server"})
	if err != nil {
		return err
	}
	if len(texts) != 3 { // the clock has two
		return errReply
	}
	server := redischeck.ParseFacts(texts[2])
	uptime := time.Duration(server.Number("uptime_in_seconds")) * time.Second
	s.start = time.UnixMicro(server.Number("server_time_usec")).Truncate(time.Second).Add(-uptime)
	s.grace.Why = s.why()
	switch {
	case s.grace.Why == store.GracePromoted:
		return st.examine(ctx, s, key)
	case s.grace.Why == store.GraceStarted && s.of.history == "":
		s.lacks("restart", "The server has no record from before: it was started without data. It may have lost them, or never had any.")
	case s.grace.Why == store.GraceStarted:
		s.lacks("restart", "The process runs for %v. Nothing shows whether it has read all that was written before.", uptime)
	case s.grace.Why == store.GraceClock:
		s.firm = true
		s.lacks("clock", "The clock was set back. This grace can't be ended: it keeps tokens in order.")
	case s.grace.Why == store.GraceMoved:
		s.lacks("history", "The server did not follow the history before. Keys were moved to it, or another server was primary in between.")
	default:
		s.firm = true
		s.lacks("history", "The history before is not known: a client of an older release was the first to notice this one. This grace can't be ended.")
	}
	return nil
}

// lacks adds a finding because of which nothing is proven.
func (s *shardGrace) lacks(check, format string, words ...any) {
	s.grace.Proven = false
	s.finds(check, store.VerdictWarn, format, words...)
}

func (s *shardGrace) finds(check string, verdict store.Verdict, format string, words ...any) {
	s.grace.Evidence = append(s.grace.Evidence, store.Finding{Check: check, Verdict: verdict, Fact: fmt.Sprintf(format, words...)})
}

// An oldServer is an answer of a replica.
type oldServer struct {
	address string
	node    redisconn.Node
	err     error
}

// examine looks for the old primary among the replicas of a promoted server, which has a Redis key of this name.
func (st *Store) examine(ctx context.Context, s *shardGrace, key string) error {
	if s.of.process == "" {
		s.lacks("old primary", "It is not known which process had the history before.")
		return nil
	}
	var old *oldServer
	answered := 0
	replicas := st.askReplicas(ctx, replicasOf(s.copies))
	for i := range replicas {
		r := &replicas[i]
		if r.err != nil {
			s.finds("replica", store.VerdictNote, "%s can't be asked: %v.", r.address, r.err)
			continue
		}
		answered++
		if redischeck.ParseFacts(r.node.Server)["run_id"] == s.of.process {
			old = r
		}
	}
	if old == nil {
		if s.used < s.start.UnixMilli() { // a server that was started from a copy of its own data looks as if it had been promoted
			s.grace.Why = store.GraceStarted
		}
		s.lacks("old primary", "It is none of the %d replicas that have answered, of the %d that the server knows. It may come back, or its process has ended.", answered, len(replicas))
		return nil
	}
	s.grace.Proven = true
	s.finds("old primary", store.VerdictOK, "%s is the process that had the history before.", old.address)
	s.resync(redischeck.ParseFacts(old.node.Copies))
	clock, err := redisconn.Read(func() (time.Time, error) {
		texts, err := st.ask(ctx, key, nil)
		if err != nil {
			return time.Time{}, err
		}
		return redischeck.ReadTime(texts, 0)
	})
	if err != nil {
		return err
	}
	s.compareClocks(clock.Ahead(old.node.Clock))
	s.finds("not known", store.VerdictNote, "Whether another server was primary in between (the log of Sentinel or of the Cluster says so), whether the old "+
		"primary was made a replica by hand before the promotion, and whether anything was written around replication.")
	return nil
}

// resync judges how the old primary follows the new one, by its INFO replication.
func (s *shardGrace) resync(copies redischeck.Facts) {
	switch {
	case copies["role"] != "slave" || copies["master_link_status"] != "up":
		s.lacks("resync", "It does not follow the new primary yet.")
	case copies["master_replid"] != s.grace.History || copies["master_replid2"] != s.of.history:
		s.lacks("resync", "It follows by a full resync: it had executed writes that the new primary lacks, or that can't be known.")
	default:
		s.finds("resync", store.VerdictOK, "It follows by a partial resync: the new primary has all that it has written.")
	}
	if copies["slave_read_only"] != "1" {
		s.lacks("writes", "It takes writes as a replica, which nobody counts.")
	}
}

// clocksAgree is by how much the new primary's clock may be ahead. It ends the TTLs of records too early by that. The trust of a
// lease ends earlier by a tenth of its TTL, and more: by 16 ms, with the shortest TTL.
const clocksAgree = 10 * time.Millisecond

// compareClocks judges by how much the new primary's clock is ahead of the old one's.
func (s *shardGrace) compareClocks(least, most time.Duration) {
	s.firm = least > clocksAgree
	switch {
	case s.firm:
		s.lacks("clock", "The new primary's clock is ahead by %v, so records of leases end there before their holders stop.", least.Round(time.Millisecond))
	case most > clocksAgree:
		s.lacks("clock", "The new primary's clock may be ahead by up to %v: that can't be measured better from here.", most.Round(time.Millisecond))
	}
}

// replicasOf returns the addresses that a primary has for its replicas.
func replicasOf(copies redischeck.Facts) (addresses []string) {
	for i := range int(copies.Number("connected_slaves")) {
		var host, port string
		for field := range strings.SplitSeq(copies["slave"+strconv.Itoa(i)], ",") {
			switch name, value, _ := strings.Cut(field, "="); name {
			case "ip":
				host = value
			case "port":
				port = value
			}
		}
		if host != "" && port != "" {
			addresses = append(addresses, net.JoinHostPort(host, port))
		}
	}
	return addresses
}

// askReplicas asks them all at once.
func (st *Store) askReplicas(ctx context.Context, addresses []string) []oldServer {
	ctx, cancel := context.WithTimeout(ctx, evidencePatience)
	defer cancel()
	replicas := make([]oldServer, len(addresses))
	var asked sync.WaitGroup
	for i, address := range addresses {
		r := &replicas[i]
		r.address = address
		driver, ok := st.conn.Driver.(asker)
		if !ok {
			r.err = fmt.Errorf("%w: by this client library", store.ErrUnsupported)
			continue
		}
		asked.Go(func() { r.node, r.err = driver.AskNode(ctx, address) }) // ends with ctx, if not before
	}
	asked.Wait()
	return replicas
}
