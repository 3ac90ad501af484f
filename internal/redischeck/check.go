// SPDX-License-Identifier: Apache-2.0

// Package redischeck finds out whether the servers of a Redis deployment are fit for locks. It is for every store
// that keeps locks there, and asks by a script, because each of them can run one. check.go has the order of the
// checks; rules.go, clock.go and cluster.go have their verdicts.
package redischeck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// Apart is the time between two looks at a server's clock.
const Apart = 2 * time.Second

// A Deployment is where a store's locks are.
type Deployment struct {
	// Keys are names that the store's user may use. Each server that may have a lock has the slot of one of them.
	Keys []string
	// Cluster and Sentinel say how the client uses it.
	Cluster, Sentinel bool
	// Guarded means that nothing is granted for a while after a server may have forgotten leases.
	Guarded bool
	// Ask runs [Script] once for each key, with these arguments, all at once. The answers are in the order of the keys.
	Ask func(ctx context.Context, keys, args []string) []Answer
	// Own is a check of the store's own, before that of the clocks.
	Own func(ctx context.Context) store.Finding
	// Apart is the time between two looks at the clocks.
	Apart time.Duration
}

// An Answer is the script's for a key: its texts, or an error of asynclock's.
type Answer struct {
	Texts []string
	Err   error
}

// sections are the parts of INFO that the rules read.
var sections = []string{"INFO server", "INFO replication", "INFO memory", "INFO stats", "INFO persistence"}

// clusterInfo and clusterSlots are asked in a Cluster.
const (
	clusterInfo  = "CLUSTER INFO"
	clusterSlots = "CLUSTER SLOTS"
)

// Check examines the servers, and reports what it finds in the order of store.CheckedStore.
func Check(ctx context.Context, d Deployment, report func(store.Finding)) {
	servers, t := d.find(ctx)
	up := d.look(ctx, servers, report)
	if len(up) == 0 {
		return
	}
	for _, rule := range []func(Deployment, *server) store.Finding{version, replication, eviction, memory, persistence} {
		if f := merge(up, func(s *server) store.Finding { return rule(d, s) }); f.Check != "" {
			report(f)
		}
	}
	if d.Cluster {
		report(merge(up, t.state))
	}
	report(d.Own(ctx))
	d.compareClocks(ctx, up, report)
}

// A server is one that has locks.
type server struct {
	name  string // host and port; empty if it is the only one
	key   string // one of its slots
	said  map[string]string
	clock sample
}

// ask asks a server each, and hands on the answers.
func (d Deployment) ask(ctx context.Context, servers []*server, questions []string, put func(s *server, clock sample, texts []string, err error)) {
	if len(servers) == 0 {
		return
	}
	keys := make([]string, len(servers))
	for i, s := range servers {
		keys[i] = s.key
	}
	clock := sample{before: time.Now()}
	answers := d.Ask(ctx, keys, questions)
	clock.after = time.Now()
	for i, a := range answers {
		err := a.Err
		if err == nil {
			clock.server, err = readTime(a.Texts, len(questions))
		}
		if err != nil {
			put(servers[i], sample{}, nil, err)
			continue
		}
		put(servers[i], clock, a.Texts[2:], nil)
	}
}

// errReply: something between the client and the server has changed the answer.
var errReply = errors.New("unexpected reply")

// readTime reads the first two texts of an answer that has n more.
func readTime(texts []string, n int) (time.Time, error) {
	if len(texts) != n+2 {
		return time.Time{}, errReply
	}
	seconds, err := strconv.ParseInt(texts[0], 10, 64)
	micros, err2 := strconv.ParseInt(texts[1], 10, 64)
	if err := cmp.Or(err, err2); err != nil {
		return time.Time{}, errReply
	}
	return time.Unix(seconds, micros*1000), nil
}

// look asks the servers for all that rules read. It reports those that don't answer, and returns the others.
func (d Deployment) look(ctx context.Context, servers []*server, report func(store.Finding)) (up []*server) {
	questions := sections
	if d.Cluster {
		questions = append(slices.Clip(questions), clusterInfo)
	}
	d.ask(ctx, servers, questions, func(s *server, clock sample, texts []string, err error) {
		if err != nil {
			report(merge([]*server{s}, func(*server) store.Finding { return silent(err) }))
			return
		}
		s.clock, s.said = clock, make(map[string]string)
		for i, text := range texts {
			s.said[questions[i]] = text
		}
		up = append(up, s)
	})
	return up
}

// silent is the finding of a server that has not answered.
func silent(err error) store.Finding {
	found := store.Finding{
		Check: "server", Verdict: store.VerdictFail, Fact: fmt.Sprintf("The server has not said how it is set up: %v.", err),
		Fix: "Look whether it runs, and whether the address is right.",
	}
	if errors.Is(err, store.ErrDenied) {
		found.Fix = "Add the rights that docs/security.md lists: " + grant("evalsha", "eval", "time")
	}
	return found
}

// merge makes one finding of those of several servers: the first of the worst, which names its server.
func merge(servers []*server, rule func(*server) store.Finding) (worst store.Finding) {
	name, more := "", 0
	for i, s := range servers {
		switch f := rule(s); {
		case i == 0 || f.Verdict > worst.Verdict:
			worst, name, more = f, s.name, 0
		case f.Verdict == worst.Verdict:
			more++
		}
	}
	switch {
	case name == "" || worst.Fact == "":
	case more > 0:
		worst.Fact = fmt.Sprintf("%s, and %d more: %s", name, more, worst.Fact)
	default:
		worst.Fact = name + ": " + worst.Fact
	}
	return worst
}

// info returns what a server says in a section. If it does not say that, missing is the finding of a check about
// which it leaves something unknown.
func (s *server) info(check, section, unknown string) (f facts, missing store.Finding) {
	return s.answer(check, "INFO "+section, unknown)
}

func (s *server) answer(check, question, unknown string) (f facts, missing store.Finding) {
	text := s.said[question]
	refusal, refused := cutRefusal(text)
	if !refused {
		return parseFacts(text), store.Finding{}
	}
	missing = store.Finding{Check: check, Verdict: store.VerdictNote, Fact: fmt.Sprintf("The server does not answer %s, so %s is unknown.", question, unknown)}
	if errors.Is(redisconn.Refused(refusal, nil), store.ErrDenied) {
		missing.Fact = fmt.Sprintf("The user may not ask for %s, so %s is unknown.", question, unknown)
		missing.Fix = grant(rightTo(question))
	}
	return nil, missing
}
