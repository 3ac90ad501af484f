// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"errors"

	"github.com/redis/rueidis"
)

// rueidis itself does not always return when a context ends. A caller waits for another caller's
// dial, and for a place in the ring of a connection whose server is silent. In a Cluster it waits
// for the topology. So there are two ways to make a call, which both return then:
//
//   - Standalone, on connections of our own, by the caller itself: see line. This is as fast as
//     rueidis.
//   - Elsewhere on a goroutine that the caller need not wait for: see Aside.

// DoAbout is Do for a command about a key, which nobody else sends. If the caller is alone, it has a
// connection for itself: see solo. The slice has the key only, and is the caller's again when the call
// has returned.
func (c *Conn) DoAbout(ctx context.Context, key []string, command rueidis.Completed) rueidis.RedisResult {
	switch mine, err := c.enterSolo(ctx, key); {
	case err != nil:
		return rueidis.NewErrorResult(err)
	case mine:
		return c.solo.do(ctx, command)
	}
	return c.Do(ctx, command)
}

// DoMultiAbout is DoMulti for commands about keys, as DoAbout is Do. There is a key for each command.
func (c *Conn) DoMultiAbout(ctx context.Context, keys []string, commands ...rueidis.Completed) []rueidis.RedisResult {
	if len(commands) > soloCommands {
		return c.DoMulti(ctx, commands...)
	}
	switch mine, err := c.enterSolo(ctx, keys); {
	case err != nil:
		return failures(err, len(commands))
	case mine:
		return c.solo.doMulti(ctx, commands)
	}
	return c.DoMulti(ctx, commands...)
}

// enterSolo reports whether a call about keys has the solo for itself. Otherwise it is to be made on the
// line.
func (c *Conn) enterSolo(ctx context.Context, keys []string) (mine bool, err error) {
	if c.solo == nil {
		return false, nil
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	for waited := false; ; waited = true {
		mine, before := c.solo.enter(ctx, keys, c.line.empty())
		if mine || before == nil || waited { // those who have waited together need not wait for each other
			return mine, nil
		}
		select {
		case <-before:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// Do sends a command and returns its result. It returns when ctx ends, if not before. The command
// may still be sent after that.
func (c *Conn) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if c.line == nil {
		return c.doOn(ctx, c.Commands, command)
	}
	for {
		if err := c.line.enter(ctx); err != nil {
			return rueidis.NewErrorResult(err)
		}
		result := c.Commands.Do(ctx, command)
		if again := c.line.leave(ctx, result.NonRedisError()); !again {
			return result
		}
	}
}

// DoMulti is Do for several commands in one write, which are all of the same slot or may be of
// several.
func (c *Conn) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	if c.line == nil {
		results, err := Aside(ctx, c.places.of(commands[0]), func() []rueidis.RedisResult { return c.Commands.DoMulti(ctx, commands...) })
		if err != nil {
			return failures(err, len(commands))
		}
		return results
	}
	for {
		if err := c.line.enter(ctx); err != nil {
			return failures(err, len(commands))
		}
		results := c.Commands.DoMulti(ctx, commands...)
		if again := c.line.leave(ctx, results[0].NonRedisError()); !again {
			return results
		}
	}
}

func failures(err error, n int) []rueidis.RedisResult {
	results := make([]rueidis.RedisResult, n)
	for i := range results {
		results[i] = rueidis.NewErrorResult(err)
	}
	return results
}

// doOn is Do for one of the nodes.
func (c *Conn) doOn(ctx context.Context, node rueidis.Client, command rueidis.Completed) rueidis.RedisResult {
	if c.line != nil { // there is only one
		return c.Do(ctx, command)
	}
	result, err := Aside(ctx, c.places.of(command), func() rueidis.RedisResult { return node.Do(ctx, command) })
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	return result
}

// Aside makes a call on a goroutine of its own and returns the result. If ctx ends before, it
// returns ctx's error. The goroutine then goes on until the client library returns, and keeps its
// place. A panic in the call is an error.
func Aside[T any](ctx context.Context, place chan struct{}, call func() T) (result T, err error) {
	if err := ctx.Err(); err != nil {
		return result, err
	}
	select {
	case place <- struct{}{}:
	case <-ctx.Done():
		return result, ctx.Err()
	}
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() { // ends when the library returns, which closing the client makes it do
		got := outcome{err: errExited}
		defer func() {
			<-place
			done <- got
		}()
		defer Recovered(&got.err)
		got.result = call()
		got.err = nil
	}()
	select {
	case got := <-done:
		return got.result, got.err
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

// errExited is the error of a call that has neither returned nor panicked: a function of the application's has ended its
// goroutine.
var errExited = errors.New("redisconn: the call has ended its goroutine")

// places bound how many goroutines Aside has. In a Cluster those who wait for a silent node must
// not take the places of others, so there are as many for each range of slots, which are usually
// on one node.
type places []chan struct{}

const (
	ranges   = 64  // of slots
	perRange = 256 // places
	inAll    = 1024
	allSlots = 1 << 14
)

func newPlaces(mode rueidis.ClientMode) places {
	if mode != rueidis.ClientModeCluster {
		return places{make(chan struct{}, inAll)}
	}
	p := make(places, ranges+1)
	for i := range p {
		p[i] = make(chan struct{}, perRange)
	}
	return p
}

// of returns the places for a command. Those of no slot, which are for one node, come last.
func (p places) of(command rueidis.Completed) chan struct{} {
	return p[min(int(command.Slot())*ranges/allSlots, len(p)-1)]
}
