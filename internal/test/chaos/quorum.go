// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store/quorumstore"
)

// A quorum is servers that know nothing of each other and keep nothing on disk. Its URL is all of theirs, with blanks
// between them.
const (
	quorumSize = 5
	// quorumGrace is that of each server. Redis tells its age in whole seconds, so it takes up to so much more.
	quorumGrace = 3 * time.Second
	graceRounds = 2 * time.Second
)

// ofQuorum are what callers do there: readers, permits, elections and jobs take what it lacks.
var ofQuorum = habits{Long: 400, Unrenewed: 20, ToEnd: 100, Bounded: 20, Impatient: 10, Blind: 4, Several: 32}

// hotKeys makes it a run of eight processes that want the same few keys.
func (s *settings) hotKeys() {
	s.crew = crew{Workers: 8, Callers: 4, Keys: []string{"k1", "k2", "k3", "k4"}, TTLs: []time.Duration{2 * time.Second}}
	s.habits = ofQuorum
}

func startQuorum(ctx context.Context, c servers.Config) (*site, error) {
	d, urls := new(servers.Deployment), []string(nil)
	for i := range quorumSize {
		c.Name = fmt.Sprint("node-", i+1)
		node, err := servers.StartRedis(ctx, c)
		if err != nil {
			d.Close()
			return nil, err
		}
		d.Nodes, urls = append(d.Nodes, node), append(urls, node.URL())
	}
	time.Sleep(quorumGrace + graceRounds) // or what is broken first would be blamed for it
	return &site{d, strings.Join(urls, " ")}, nil
}

// overAll makes one store of those that open returns for each URL. It is nil if one of these is.
func overAll(urls string, open func(url string) (*workersStore, error)) (*workersStore, error) {
	if !isQuorum(urls) {
		return open(urls)
	}
	var nodes []quorumstore.Node
	var closes []func()
	all := &workersStore{close: func() {
		for _, end := range closes {
			end()
		}
	}}
	for url := range strings.FieldsSeq(urls) {
		one, err := open(url)
		if one == nil {
			all.close()
			return nil, err
		}
		nodes = append(nodes, quorumstore.Node{Name: fmt.Sprint("node-", len(nodes)+1), Store: one.Store})
		closes = append(closes, one.close)
	}
	quorum, err := quorumstore.New(nodes...)
	if err != nil {
		all.close()
		return nil, err
	}
	all.Store = quorum
	return all, nil
}

func isQuorum(urls string) bool { return strings.Contains(urls, " ") }

// minority chooses servers without which a majority is left, and majority so many that none is.
func (b *blow) minority() []*servers.Redis { return b.several(1, quorumSize/2) }
func (b *blow) majority() []*servers.Redis { return b.several(quorumSize/2+1, quorumSize) }

func (b *blow) several(least, most int) (some []*servers.Redis) {
	for _, i := range b.rand.Perm(quorumSize)[:least+b.rand.IntN(most-least+1)] {
		some = append(some, b.store.Nodes[i])
	}
	var names []string
	for _, node := range some {
		names = append(names, node.Name)
	}
	b.hit(strings.Join(names, ", "))
	return some
}

// loseMinority kills servers, and starts them empty after a while. They are broken until their graces are over.
func (b *blow) loseMinority(d time.Duration) error {
	err := b.lose(b.minority(), d)
	b.wait(quorumGrace + graceRounds)
	return err
}

// loseMajority is the same with more of them. The graces are part of the recovery then.
func (b *blow) loseMajority() error { return b.thenRest(b.lose(b.majority(), b.between(50, 200))) }

// thenRest ends the blow, and gives the locks the time to recover before the next one.
func (b *blow) thenRest(err error) error {
	b.record.End = history.Now()
	b.wait(b.longestTTL() + quorumGrace + graceRounds)
	return err
}

func (b *blow) lose(nodes []*servers.Redis, d time.Duration) error {
	for _, node := range nodes {
		node.Kill()
	}
	b.wait(d)
	for _, node := range nodes {
		if err := node.Start(); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		if err := node.Await(context.WithoutCancel(b.ctx)); err != nil {
			return err
		}
	}
	return nil
}

func (b *blow) pauseAll(nodes []*servers.Redis, d time.Duration) (err error) {
	for _, node := range nodes {
		err = errors.Join(err, node.Pause())
	}
	b.wait(d)
	for _, node := range nodes {
		err = errors.Join(err, node.Resume())
	}
	return err
}

// late is the weather in which all that is sent arrives, and late.
func (b *blow) late() weather {
	d := b.between(2, 150)
	return weather{up: d, down: d / 10 * time.Duration(b.rand.IntN(11))}
}

// cut changes the weather between servers and so many of the workers for a while, and for as long as what is late
// takes then.
func (b *blow) cut(nodes []*servers.Redis, workers int, w weather) error {
	var whom []string
	some := b.rand.Perm(len(b.seats))[:workers]
	for _, i := range some {
		whom = append(whom, b.seats[i].name)
	}
	b.hit(b.record.Whom + " from " + strings.Join(whom, ", "))
	d := b.between(20, 200)
	for _, now := range []weather{w, {}} {
		for _, i := range some {
			for _, node := range nodes {
				b.seats[i].proxy.changeAt(node.Addr, now)
			}
		}
		b.wait(d)
		d = max(w.up, w.down)
	}
	return nil
}
