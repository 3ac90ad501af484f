// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	masterSet = "asynclock" // the name the sentinels give to the primary
	replicas  = 2
	sentinels = 3
	quorum    = 2
)

// launchReplication starts the primary and its replicas.
func (s *servers) launchReplication() (err error) {
	if s.primary, err = s.launch("primary", inMemory()...); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s.primary.addr)
	if err != nil {
		return err
	}
	for i := range replicas {
		if _, err := s.launch(fmt.Sprintf("replica-%d", i+1), inMemory("--replicaof", host, port)...); err != nil {
			return err
		}
	}
	return nil
}

// watchReplication starts the sentinels, once there is something to see: they
// ask the primary for its replicas when they start, and then not for 10 s.
func (s *servers) watchReplication(ctx context.Context) error {
	if err := await(ctx, "the replicas", s.replicasOnline); err != nil {
		return err
	}
	for i := range sentinels {
		name := fmt.Sprintf("sentinel-%d", i+1)
		config, err := s.sentinelConfig(name)
		if err != nil {
			return err
		}
		one, err := s.launch(name, config, "--sentinel")
		if err != nil {
			return err
		}
		s.sentinels = append(s.sentinels, one)
	}
	for _, one := range s.sentinels {
		if err := await(ctx, one.name, one.answers); err != nil {
			return err
		}
		err := await(ctx, one.name, func(ctx context.Context) error { return seesAll(ctx, one) })
		if err != nil {
			return err
		}
	}
	return nil
}

// sentinelConfig writes the file that a sentinel insists on having, since it
// keeps there what it learns.
func (s *servers) sentinelConfig(name string) (string, error) {
	host, port, err := net.SplitHostPort(s.primary.addr)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf(`sentinel monitor %[1]s %[2]s %[3]s %[4]d
sentinel down-after-milliseconds %[1]s 1000
sentinel failover-timeout %[1]s 3000
sentinel parallel-syncs %[1]s %[5]d
`, masterSet, host, port, quorum, replicas)
	file := filepath.Join(s.dir, name+".conf")
	return file, os.WriteFile(file, []byte(text), 0o600)
}

func (s *servers) replicasOnline(ctx context.Context) error {
	facts, err := s.primary.facts(ctx, "INFO", "replication")
	if err != nil {
		return err
	}
	if err := expect(facts, map[string]string{"connected_slaves": strconv.Itoa(replicas)}); err != nil {
		return err
	}
	for i := range replicas {
		name := fmt.Sprintf("slave%d", i)
		if !strings.Contains(facts[name], "state=online") {
			return fmt.Errorf("%s is %q, not online", name, facts[name])
		}
	}
	return nil
}

// seesAll checks that a sentinel knows the primary, every replica and every
// other sentinel, and finds all of them well: only then could it fail over.
func seesAll(ctx context.Context, sentinel *server) error {
	reply, err := sentinel.ask(ctx, "SENTINEL", "MASTER", masterSet)
	if err != nil {
		return err
	}
	facts, err := reply.AsStrMap()
	if err != nil {
		return err
	}
	err = expect(facts, map[string]string{
		"flags":               "master",
		"num-slaves":          strconv.Itoa(replicas),
		"num-other-sentinels": strconv.Itoa(sentinels - 1),
	})
	if err != nil {
		return err
	}
	reply, err = sentinel.ask(ctx, "SENTINEL", "REPLICAS", masterSet)
	if err != nil {
		return err
	}
	list, err := reply.ToArray()
	if err != nil {
		return err
	}
	for _, replica := range list {
		facts, err := replica.AsStrMap()
		if err != nil {
			return err
		}
		if err := expect(facts, map[string]string{"flags": "slave", "master-link-status": "ok"}); err != nil {
			return err
		}
	}
	return nil
}
