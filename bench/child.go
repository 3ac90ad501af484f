// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// An errand is what this program tells another instance of itself to do for a stage. They go on to
// speak in JSON.
type errand struct {
	Part, Peer, Key, Redis, Etcd string
	TTL                          time.Duration
	Short                        bool
	Keys                         int
}

// parts are what a child does. It ends with its input.
var parts = map[string]func(ctx context.Context, s *stage, keys int, in *json.Decoder, out *json.Encoder){
	"taker": take, "keeper": keep, "orders": takeOrders,
}

// runChild does the errand.
func runChild(ctx context.Context, told string) error {
	var e errand
	if err := json.Unmarshal([]byte(told), &e); err != nil {
		return err
	}
	i := slices.IndexFunc(locks, func(p peer) bool { return p.name == e.Peer })
	play := parts[e.Part]
	if i < 0 || play == nil {
		return fmt.Errorf("no child %q of %q", e.Part, e.Peer)
	}
	s := &stage{peer: locks[i], key: e.Key, world: world{redis: e.Redis, etcd: e.Etcd, ttl: e.TTL, short: e.Short}}
	err := catch(func() { play(ctx, s, e.Keys, json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)) })
	return errors.Join(err, s.close(ctx))
}

// A child is another instance of this program, with a part to play for a stage.
type child struct {
	part    string
	process *exec.Cmd
	in      io.Closer
	tell    *json.Encoder
	said    *json.Decoder
}

func (s *stage) spawn(part string, p peer, keys int) *child {
	told := errand{part, p.name, s.key, s.redis, s.etcd, s.ttl, s.short, keys}
	process := exec.Command(must(os.Executable()), "-child", string(must(json.Marshal(told))))
	process.Stderr = os.Stderr
	in, out := must(process.StdinPipe()), must(process.StdoutPipe())
	check(process.Start())
	return &child{part, process, in, json.NewEncoder(in), json.NewDecoder(out)}
}

// hear waits for what the child says.
func (c *child) hear(what any) {
	if err := c.said.Decode(what); err != nil {
		check(fmt.Errorf("%s: %w", c.part, err))
	}
}

// end closes the child's input and waits for its end, but not for longer than ctx.
func (c *child) end(ctx context.Context) error {
	defer context.AfterFunc(ctx, c.kill)()
	return errors.Join(c.in.Close(), c.process.Wait())
}

func (c *child) kill() { _ = c.process.Process.Kill() } // it may have ended

// visit has a child for as long as something is done with it.
func (s *stage) visit(ctx context.Context, part string, p peer, keys int, do func(c *child)) {
	c := s.spawn(part, p, keys)
	defer context.AfterFunc(ctx, c.kill)() // so that nobody waits for it
	err := catch(func() { do(c) })
	if err != nil {
		c.kill()
	}
	check(errors.Join(err, c.end(ctx)))
}
