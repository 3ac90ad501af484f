// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"cmp"
	"context"
	"encoding"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// A command is one that is sent at most once, except that the server may answer that it did not run
// it: it does not know a script by its name, or does not have the slot. Its words are its own, because
// go-redis may still send them after its context has ended.
type command struct {
	key    string
	words  []any
	source string // of the script that words[1] names; empty: none
	ahead  bool
	result redisdriver.Result
	value  any   // what the result is made of
	err    error // of the result

	answered bool // or has failed
	written  atomic.Bool
}

// A word is one of a command that tells when go-redis writes it.
type word struct {
	text string
	of   *command
}

var _ encoding.BinaryMarshaler = word{}

// MarshalBinary is called when there is a connection, and the word is about to be sent.
func (w word) MarshalBinary() ([]byte, error) {
	w.of.written.Store(true)
	return []byte(w.text), nil
}

// evalOf is a run of a script, by its name.
func evalOf(run *redisdriver.Run) *command {
	c := &command{key: run.Keys[0], words: make([]any, 0, 3+len(run.Keys)+len(run.Args)), source: run.Script.Source, ahead: run.Ahead}
	c.words = append(c.words, "evalsha", word{run.Script.SHA1(), c}, len(run.Keys))
	for _, key := range run.Keys {
		c.words = append(c.words, key)
	}
	for _, arg := range run.Args {
		c.words = append(c.words, arg)
	}
	return c
}

// read notes what a sent command was answered, or the error of one that was not.
func (c *command) read(ctx context.Context, sent *redis.Cmd, unanswered error) {
	c.answered = true
	if !c.written.Load() {
		c.fail(ended(ctx, &unsent{unanswered}))
		return
	}
	value, err := sent.Result()
	if err == nil && value == nil {
		err = errNoAnswer
	}
	c.value, c.err = value, ended(ctx, err)
	switch text, refused := serverError(err); {
	case errors.Is(err, redis.Nil):
		c.result, c.err = redisdriver.ValueResult(nil), nil
	case refused:
		c.result = redisdriver.RefusalResult(text, err)
	case c.err != nil:
		c.result = redisdriver.ErrorResult(c.err)
	default:
		c.result = redisdriver.ValueResult(value)
	}
}

// fail notes that a command was not answered.
func (c *command) fail(err error) {
	c.answered = true
	c.err, c.result = err, redisdriver.ErrorResult(err)
}

// isRefused reports whether the server did not run the command, and said so by this code.
func (c *command) isRefused(code string) bool {
	text, ok := serverError(c.err)
	return ok && c.written.Load() && strings.HasPrefix(text, code+" ")
}

// inPipelines makes commands, at most redisconn.MaxPipeline at once.
func (d *driver) inPipelines(ctx context.Context, commands []*command) []redisdriver.Result {
	results := make([]redisdriver.Result, 0, len(commands))
	for chunk := range slices.Chunk(commands, redisconn.MaxPipeline) {
		results = append(results, d.do(ctx, chunk)...)
	}
	return results
}

// do makes commands, all at once, and returns when ctx ends, if not before.
func (d *driver) do(ctx context.Context, commands []*command) []redisdriver.Result {
	results, err := redisconn.Aside(ctx, d.places.of(commands[0].key), func() []redisdriver.Result {
		d.make(ctx, commands)
		results := make([]redisdriver.Result, len(commands))
		for i, c := range commands {
			results[i] = c.result
		}
		return results
	})
	if err != nil {
		return slices.Repeat([]redisdriver.Result{redisdriver.ErrorResult(err)}, len(commands))
	}
	return results
}

// redirections is how often the topology of a Cluster is read for commands whose slot has moved.
const redirections = 3

// make makes commands, and again those that the server has not run.
func (d *driver) make(ctx context.Context, commands []*command) {
	if d.cluster == nil { // the server may be a node of one: MOVED is an error then
		d.send(ctx, d.single, commands)
		return
	}
	for range redirections {
		d.route(ctx, commands)
		moved := which(commands, "MOVED")
		if len(moved) == 0 {
			return
		}
		d.reload(ctx)
		commands = moved
	}
	d.route(ctx, commands)
}

func which(commands []*command, code string) (refused []*command) {
	for _, c := range commands {
		if c.isRefused(code) {
			refused = append(refused, c)
		}
	}
	return refused
}

// route sends each command to its node of a Cluster.
func (d *driver) route(ctx context.Context, commands []*command) {
	shares := make(map[*redis.Client][]*command)
	for _, c := range commands {
		node, err := d.nodeOf(ctx, c.key)
		if err != nil {
			c.fail(err)
			continue
		}
		shares[node] = append(shares[node], c)
	}
	var sending sync.WaitGroup
	for node, share := range shares {
		sending.Go(func() { d.sendRecovered(ctx, node, share) }) // ends as send does
	}
	sending.Wait()
}

// sendRecovered is send on a goroutine of its own, where nobody else recovers a panic of go-redis or of a hook.
func (d *driver) sendRecovered(ctx context.Context, node *redis.Client, commands []*command) {
	var err error
	defer func() {
		if err == nil {
			return
		}
		for _, c := range commands {
			if !c.answered {
				c.fail(err)
			}
		}
	}()
	defer redisconn.Recovered(&err)
	d.send(ctx, node, commands)
}

// nodeOf returns the primary of a key.
func (d *driver) nodeOf(ctx context.Context, key string) (*redis.Client, error) {
	if d.cluster == nil {
		return d.single, nil
	}
	node, err := d.cluster.MasterForKey(ctx, key)
	if err != nil {
		return nil, &unsent{err}
	}
	return node, nil
}

// send sends commands to a node, and then whole the scripts that it does not know.
func (d *driver) send(ctx context.Context, node *redis.Client, commands []*command) {
	d.sendOnce(ctx, node, commands)
	unknown := which(commands, "NOSCRIPT")
	if len(unknown) == 0 {
		return
	}
	for _, c := range unknown {
		c.words = append([]any{"eval", word{c.source, c}}, c.words[2:]...) // go-redis may still read those that were sent
		c.ahead, c.answered = false, false
		c.written.Store(false)
	}
	d.sendOnce(ctx, node, unknown)
}

// sendOnce sends commands to a node, in one write.
func (d *driver) sendOnce(ctx context.Context, node *redis.Client, commands []*command) {
	d.conns.doubt(node.Options().Addr)
	pipe, sent := node.Pipeline(), make([]*redis.Cmd, len(commands))
	for i, c := range commands {
		if c.ahead {
			pipe.Exists(ctx, c.key)
		}
		sent[i] = pipe.Do(ctx, c.words...)
	}
	_, err := pipe.Exec(ctx)
	for i, c := range commands {
		c.read(ctx, sent[i], cmp.Or(err, errNoAnswer))
	}
}

// errNoAnswer: go-redis has neither an answer nor an error.
var errNoAnswer = errors.New("goredisstore: a command has neither an answer nor an error")

// places bound how many goroutines wait for go-redis. In a Cluster those who wait for a silent node
// must not take the places of others, so there are as many for each of some ranges of slots.
type places []chan struct{}

const (
	ranges   = 64
	perRange = 256
	inAll    = 1024
)

func newPlaces(n, each int) places {
	p := make(places, n)
	for i := range p {
		p[i] = make(chan struct{}, each)
	}
	return p
}

// of returns the places for a key. Keys of one slot have the same, because they have the same text in
// braces.
func (p places) of(key string) chan struct{} {
	if len(p) == 1 {
		return p[0]
	}
	if _, rest, ok := strings.Cut(key, "{"); ok {
		key, _, _ = strings.Cut(rest, "}")
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key)) // never fails
	return p[hash.Sum32()%uint32(len(p))]
}
