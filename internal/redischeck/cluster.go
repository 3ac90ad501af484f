// SPDX-License-Identifier: Apache-2.0

package redischeck

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/asynclock/asynclock-go/internal/redisslot"
	"github.com/asynclock/asynclock-go/store"
)

// allSlots is how many parts a Cluster divides its keys into.
const allSlots = 16384

// tries is how many nodes, or so, are asked which ones there are.
const tries = 8

// A topology is where a Cluster has its slots.
type topology struct {
	ranges []slots // none: no node has said it
}

type slots struct {
	first, last int
	addr        string // of the primary
}

// parseSlots reads the script's answer to CLUSTER SLOTS. It leaves out lines that no server gives.
func parseSlots(text string) (t topology) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 4 {
			continue
		}
		first, err := strconv.Atoi(words[0])
		last, err2 := strconv.Atoi(words[1])
		if err != nil || err2 != nil || first < 0 || last < first || last >= allSlots {
			continue
		}
		host := words[2]
		if host == "false" { // the node that was asked does not know its address
			host = ""
		}
		t.ranges = append(t.ranges, slots{first, last, net.JoinHostPort(host, words[3])})
	}
	return t
}

// addr returns who has a slot. It is empty if nobody has it.
func (t topology) addr(slot int) string {
	for _, r := range t.ranges {
		if r.first <= slot && slot <= r.last {
			return r.addr
		}
	}
	return ""
}

// find returns the servers that may have locks. In a Cluster that hides them, it is the one with the first key.
func (d Deployment) find(ctx context.Context) (servers []*server, t topology) {
	all := []*server{{key: d.Keys[0]}}
	if !d.Cluster {
		return all, t
	}
	var some []*server
	for i := range min(tries, len(d.Keys)) {
		some = append(some, &server{key: d.Keys[i]})
	}
	d.ask(ctx, some, []string{clusterSlots}, func(_ *server, a answer) {
		if a.err == nil && t.ranges == nil {
			t = parseSlots(a.texts[0])
		}
	})
	if t.ranges == nil {
		return all, t
	}
	seen := make(map[string]bool)
	for _, key := range d.Keys {
		if addr := t.addr(redisslot.Of(key)); addr != "" && !seen[addr] {
			seen[addr] = true
			servers = append(servers, &server{name: addr, key: key})
		}
	}
	return servers, t
}

// state is the check of whether the Cluster serves all its slots, as a node sees it.
func (t topology) state(s *server) store.Finding {
	served := 0
	for _, r := range t.ranges {
		served += r.last - r.first + 1
	}
	f, missing := s.answer("cluster", clusterInfo, "the state of the Cluster")
	found := store.Finding{Check: "cluster", Fact: "Each slot has a server, and the Cluster's state is ok."}
	switch {
	case t.ranges != nil && served < allSlots:
		found.Verdict, found.Fact = store.VerdictFail, fmt.Sprintf("%d of %d slots have no server, so their keys can't be locked.", allSlots-served, allSlots)
		found.Fix = "Run redis-cli --cluster fix."
	case f == nil:
		return missing
	case f["cluster_state"] != "ok":
		found.Verdict, found.Fact = store.VerdictFail, fmt.Sprintf("The Cluster's state is %q.", f["cluster_state"])
		found.Fix = "redis-cli --cluster check says what is missing."
	case f.Number("cluster_slots_fail")+f.Number("cluster_slots_pfail") > 0:
		found.Verdict, found.Fact = store.VerdictWarn, fmt.Sprintf("The servers of %d slots don't answer the other nodes.", f.Number("cluster_slots_fail")+f.Number("cluster_slots_pfail"))
		found.Fix = "redis-cli --cluster check says which."
	case t.ranges == nil:
		found.Verdict, found.Fact = store.VerdictNote, "The Cluster's state is ok. The user may not ask for its nodes, so only one was looked at."
		found.Fix = grant(rightTo(clusterSlots))
	}
	return found
}
