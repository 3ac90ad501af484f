// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/asynclock/asynclock-go/internal/test/servers/zkserver"
)

// A setting is everything that tests need beside themselves.
type setting struct {
	dir       string   // for what is of no use afterwards
	modules   []string // the directories of this one and of those below it
	servers   *servers
	zooKeeper *zkserver.Server // nil: not needed
	exports   []string         // where the tests find it all, as variables of the environment
}

// setUp installs what is missing and starts what the job needs. While the servers start and grow old
// enough, it builds what the tests need. If any of that fails, nothing is left.
func setUp(ctx context.Context, job job, args []string, log io.Writer) (s *setting, err error) {
	plan := plan{compiles: job == jobTest, java: job == jobTest && playsJava(args), zooKeeper: playsZooKeeper(job, args)}
	bin, err := prepare(ctx, plan, log)
	if err != nil {
		return nil, err
	}
	s = new(setting)
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.modules, err = modules(ctx); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "asynclock-testenv-"); err != nil {
		return nil, err
	}
	var building sync.WaitGroup
	var peers []string
	var errBuild, errCompile error
	if plan.java {
		building.Go(func() { peers, errBuild = buildPeers(ctx, s.modules[0], log) })
	}
	if plan.compiles {
		building.Go(func() { errCompile = compile(ctx, s.modules, args, log) })
	}
	// The servers end with the thread that starts them, so that is this one: see main.
	err = s.start(ctx, bin, plan)
	building.Wait()
	s.exports = append(s.exports, peers...)
	return s, errors.Join(err, errBuild, errCompile)
}

// start starts the servers and says where they are.
func (s *setting) start(ctx context.Context, bin string, plan plan) (err error) {
	if s.servers, err = start(ctx, bin, s.dir); err != nil {
		return err
	}
	s.exports = s.servers.env()
	if plan.zooKeeper {
		if s.zooKeeper, err = startZooKeeper(ctx, s.dir); err != nil {
			return err
		}
		s.exports = append(s.exports, zooKeeperEnv(s.zooKeeper))
	}
	return s.servers.awaitAge(ctx)
}

// close stops what runs and removes what it wrote.
func (s *setting) close() {
	if s.zooKeeper != nil {
		s.zooKeeper.Kill()
	}
	if s.servers != nil {
		s.servers.stop()
	}
	os.RemoveAll(s.dir)
}

// ended names the servers that are gone although nobody stopped them.
func (s *setting) ended() []string {
	names := s.servers.ended()
	if s.zooKeeper != nil && s.zooKeeper.Ended() {
		names = append(names, "ZooKeeper")
	}
	return names
}

// compile compiles what is to be tested, as go test will want it. What is wrong there, go
// test will say.
func compile(ctx context.Context, modules, args []string, log io.Writer) error {
	_, packages := split(args)
	if len(packages) > 0 {
		modules = modules[:1]
	} else {
		packages = everything
	}
	fmt.Fprintln(log, "testenv: compiling the tests meanwhile")
	for _, dir := range modules {
		cmd := command{dir: dir, env: os.Environ(), stdout: io.Discard, stderr: io.Discard, grace: grace}
		if _, err := cmd.run(ctx, "go", append([]string{"list", "-e", "-export", "-test", "-race"}, packages...)...); err != nil {
			return err
		}
	}
	return nil
}
