// SPDX-License-Identifier: Apache-2.0

package asynclockui

import (
	"context"
	"net/http"
	"time"

	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/internal/plain"
	"github.com/asynclock/asynclock-go/once"
)

// A jobsView is what the template jobs shows.
type jobsView struct{ Jobs, Elections []subject }

// A subject is a job or an election.
type subject struct {
	Key, Address string
	Facts        []fact
	Problem      string
}

func (p *page) showJobs(w http.ResponseWriter, r *http.Request) {
	p.showLive(w, r, "jobs", "", nil, func(ctx context.Context) (any, error) { return p.jobsView(ctx), nil })
}

func (p *page) jobsView(ctx context.Context) (v jobsView) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	for _, key := range p.jobs {
		v.Jobs = append(v.Jobs, p.subject(ctx, key, p.lastRun))
	}
	for _, key := range p.elections {
		v.Elections = append(v.Elections, p.subject(ctx, key, p.leader))
	}
	return v
}

func (p *page) subject(ctx context.Context, key string, find func(ctx context.Context, key string) ([]fact, error)) subject {
	facts, err := find(ctx, key)
	return subject{plain.Text(key), addressOf("key", key), facts, problem(err)}
}

func (p *page) lastRun(ctx context.Context, key string) ([]fact, error) {
	run, err := once.LastRun(ctx, p.locks, key)
	switch {
	case err != nil:
		return nil, err
	case run.Start.IsZero():
		return []fact{{"Last run", "none is known"}}, nil
	}
	return runFacts(ctx, p.locks, key, run), nil
}

func (p *page) leader(ctx context.Context, key string) ([]fact, error) {
	leader, err := elect.Current(ctx, p.locks, key)
	switch {
	case err != nil:
		return nil, err
	case leader.Token == 0:
		return []fact{{"Leader", "nobody"}}, nil
	}
	facts := []fact{{"Leader", plain.Text(leader.Holder)}, {"Term", number(leader.Token)}}
	if len(leader.Value) > 0 {
		facts = append(facts, fact{"Value", plain.Start(string(leader.Value), mostNote)})
	}
	if !leader.Until.IsZero() {
		facts = append(facts, fact{"Renewed until", "in " + plain.Seconds(time.Until(leader.Until))})
	}
	return facts, nil
}
