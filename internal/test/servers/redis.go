// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A Config is what Redis servers are started with that belong together.
type Config struct {
	// Dir is where each server makes a directory of its own.
	Dir string
	// Name is for people. The default is redis.
	Name string
	// Encryption is what the servers speak TLS with. Without it they don't.
	Encryption *Encryption
	// Args are further arguments of redis-server, except of a sentinel.
	Args []string
	// Rewritable gives each server a file for CONFIG REWRITE, except a sentinel, which has one.
	Rewritable bool
	// Env are further variables of the environment, except of a sentinel.
	Env []string
	// Patience is how long a server may be silent before sentinels, or the other nodes of
	// a Cluster, give it up. The default is 2 s.
	Patience time.Duration

	first []string // arguments that have to come first
}

func (c Config) patience() time.Duration { return cmp.Or(c.Patience, 2*time.Second) }

// named returns the same with another name and more arguments.
func (c Config) named(name string, args ...string) Config {
	c.Name, c.Args = name, slices.Concat(c.Args, args)
	return c
}

// A Redis is a redis-server, whatever its role.
type Redis struct {
	Server

	// Args are those of Config, for the next start.
	Args []string

	config Config
	tls    *tls.Config // of clients
	mu     sync.Mutex
	client rueidis.Client // nil: nobody has asked anything
}

// inMemory are arguments of a server that keeps no files, and is quick to make a replica.
// Clients of a Cluster are shown a replica only when it has been pinged.
var inMemory = []string{
	"--save", "", "--appendonly", "no",
	"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
}

// StartRedis starts one that keeps nothing on disk, unless its arguments say so, and
// waits until it serves. If it is not installed, the error is [exec.ErrNotFound].
func StartRedis(ctx context.Context, c Config) (*Redis, error) {
	c.Name = cmp.Or(c.Name, "redis")
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, err
	}
	config, err := c.Encryption.ClientTLS()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(c.Dir, c.Name+"-")
	if err != nil {
		return nil, err
	}
	if c.Rewritable {
		file := filepath.Join(dir, "redis.conf")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			return nil, err
		}
		c.first = []string{file}
	}
	return onFreePorts(1, func(ports []int) (*Redis, error) {
		r := &Redis{Server: Server{Name: c.Name, Addr: address(ports[0]), Dir: dir}, Args: c.Args, config: c, tls: config}
		r.check, r.command = r.serves, func() *exec.Cmd {
			cmd := exec.Command(program, r.arguments()...)
			cmd.Env = slices.Concat(os.Environ(), c.Env)
			return cmd
		}
		err := r.launch(ctx)
		r.hangUp() // so that a test that counts connections sees its own
		return r, err
	})
}

func (r *Redis) arguments() []string {
	return slices.Concat(r.config.first, inMemory, r.config.Encryption.arguments(r.Port()),
		[]string{"--bind", host, "--dir", r.Dir, "--daemonize", "no"}, r.Args)
}

// serves checks that the process behind the address is ours, and has read its data.
func (r *Redis) serves(ctx context.Context) error {
	facts, err := r.Facts(ctx, "INFO")
	if err != nil {
		return err
	}
	if facts["loading"] == "1" {
		return errors.New("it reads its data")
	}
	return expect(facts, map[string]string{"process_id": strconv.Itoa(r.process.Child.Pid)})
}

// URL is where the server is, as rueidis.ParseURL reads it.
func (r *Redis) URL() string { return r.config.Encryption.scheme() + "://" + r.Addr }

// Close ends the server and the connection to it.
func (r *Redis) Close() {
	r.hangUp()
	r.Kill()
}

// expect checks that the facts are as wanted, and says which one is not.
func expect(facts, want map[string]string) error {
	for name, value := range want {
		if facts[name] != value {
			return fmt.Errorf("%s is %q, not %q", name, facts[name], value)
		}
	}
	return nil
}
