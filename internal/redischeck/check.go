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
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// Apart is the time between two looks at a server's clock.
const Apart = 2 * time.Second

// patience is how long a server may take for an answer.
const patience = 2 * time.Second

// A Deployment is where a store's locks are.
type Deployment struct {
	// Keys are names that the store's user may use. Each server that may have a lock has the slot of one of them.
	Keys []string
	// Cluster and Sentinel say how the client uses it.
	Cluster, Sentinel bool
	// Guarded means that nothing is granted for a while after a server may have forgotten leases.
	Guarded bool
	// Ask runs [Script] for a key, with these arguments, and returns its texts or an error of asynclock's. Calls overlap.
	Ask func(ctx context.Context, key string, args []string) ([]string, error)
	// Own is a check of the store's own, before that of the clocks.
	Own func(ctx context.Context) store.Finding
	// Apart is the time between two looks at the clocks.
	Apart time.Duration
}

// sections are the parts of INFO that the rules read.
var sections = []string{"INFO server", "INFO replication", "INFO memory", "INFO stats", "INFO persistence"}

// clusterInfo and clusterSlots are asked in a Cluster.
const (
	clusterInfo  = "CLUSTER INFO"
	clusterSlots = "CLUSTER SLOTS"
)

// Check examines the servers, and reports what it finds in the order of store.CheckedStore, until ctx ends. Whether the
// user has the rights of all scripts, it leaves to who takes a lock: ACL DRYRUN would need a right itself.
func Check(ctx context.Context, d Deployment, tell func(store.Finding)) {
	report := func(f store.Finding) {
		deadline, limited := ctx.Deadline() // the client's timer may be faster than that of ctx
		if ctx.Err() == nil && (!limited || time.Now().Before(deadline)) {
			tell(f)
		}
	}
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
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	report(d.Own(limited))
	d.compareClocks(ctx, up, report)
}

// A server is one that has locks.
type server struct {
	name  string // host and port; empty if it is the only one
	key   string // one of its slots
	said  map[string]string
	clock sample
}

// An answer is what a server has said, besides its clock.
type answer struct {
	texts []string
	clock sample
	err   error
}

// ask asks the servers, all at once, so that none that is silent hides another. It hands on the answers in their order.
func (d Deployment) ask(ctx context.Context, servers []*server, questions []string, put func(*server, answer)) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers := make([]answer, len(servers))
	var asked sync.WaitGroup
	for i, s := range servers {
		asked.Go(func() { answers[i] = d.askOne(ctx, s.key, questions) }) // ends with ctx, if not before; asked waits for it
	}
	asked.Wait()
	for i, a := range answers {
		put(servers[i], a)
	}
}

func (d Deployment) askOne(ctx context.Context, key string, questions []string) (a answer) {
	a.clock.before = time.Now()
	a.texts, a.err = d.Ask(ctx, key, questions)
	a.clock.after = time.Now()
	if a.err == nil {
		a.clock.server, a.err = ReadTime(a.texts, len(questions))
	}
	if a.err == nil {
		a.texts = a.texts[2:]
	}
	return a
}

// errReply: something between the client and the server has changed the answer.
var errReply = errors.New("unexpected reply")

// ReadTime reads the clock, which is the first two texts of an answer that has n more.
func ReadTime(texts []string, n int) (time.Time, error) {
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
	d.ask(ctx, servers, questions, func(s *server, a answer) {
		if a.err != nil {
			report(merge([]*server{s}, func(*server) store.Finding { return silent(a.err) }))
			return
		}
		s.clock, s.said = a.clock, make(map[string]string)
		for i, text := range a.texts {
			s.said[questions[i]] = text
		}
		up = append(up, s)
	})
	return up
}

// silent is the finding of a server that has not answered, or that refuses to.
func silent(err error) store.Finding {
	found := store.Finding{
		Check: "server", Verdict: store.VerdictFail, Fact: fmt.Sprintf("The server has not said how it is set up: %v.", err),
		Fix: "Look whether it runs, and whether the address is right.",
	}
	if errors.Is(err, store.ErrDenied) {
		found.Fact = fmt.Sprintf("The server refuses to say how it is set up: %v.", err)
		found.Fix = "Give the user the key pattern and the rights of docs/security.md, such as " + grant("evalsha", "eval", "time")
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
func (s *server) info(check, section, unknown string) (f Facts, missing store.Finding) {
	return s.answer(check, "INFO "+section, unknown)
}

func (s *server) answer(check, question, unknown string) (f Facts, missing store.Finding) {
	text := s.said[question]
	refusal, refused := cutRefusal(text)
	if !refused {
		return ParseFacts(text), store.Finding{}
	}
	missing = store.Finding{Check: check, Verdict: store.VerdictNote, Fact: fmt.Sprintf("The server does not answer %s, so %s is unknown.", question, unknown)}
	if errors.Is(redisconn.Refused(refusal, nil), store.ErrDenied) {
		missing.Fact = fmt.Sprintf("The user may not ask for %s, so %s is unknown.", question, unknown)
		missing.Fix = grant(rightTo(question))
	}
	return nil, missing
}
