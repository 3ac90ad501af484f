// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/servers/dbserver"
)

// servers is everything that the tests talk to.
type servers struct {
	bin, dir string
	ports    []int     // not used yet
	all      []*server // in the order of their start

	standalone *server
	primary    *server
	sentinels  []*server
	masters    []*server

	sql  []*server // the databases, in the order of dbserver.Kinds
	data *dbserver.Data
}

// start starts every server and returns when all of them answer. Locks are granted after awaitAge. If one
// can't, none is left.
func start(ctx context.Context, bin, dir string) (*servers, error) {
	ports, err := freePorts(1 + (1 + replicas) + sentinels + masters + len(dbserver.Kinds))
	if err != nil {
		return nil, err
	}
	s := &servers{bin: bin, dir: dir, ports: ports}
	if err := s.build(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// build starts what can start at once before it waits for any of it.
func (s *servers) build(ctx context.Context) (err error) {
	if s.standalone, err = s.launch("standalone", inMemory()...); err != nil {
		return err
	}
	if err := s.launchReplication(); err != nil {
		return err
	}
	if err := s.launchMasters(); err != nil {
		return err
	}
	for _, one := range s.all {
		if err := await(ctx, one.name, one.answers); err != nil {
			return err
		}
	}
	if err := s.launchDatabases(ctx); err != nil {
		return err
	}
	if err := s.formCluster(ctx); err != nil {
		return err
	}
	if err := s.watchReplication(ctx); err != nil {
		return err
	}
	if err := await(ctx, "the Cluster", s.clusterServes); err != nil {
		return err
	}
	for _, target := range s.urls() {
		if err := await(ctx, target.variable, target.takesWrites); err != nil {
			return err
		}
	}
	return s.awaitDatabases(ctx)
}

// awaitAge waits until every Redis server grants locks at once.
func (s *servers) awaitAge(ctx context.Context) error {
	for _, one := range s.all {
		if slices.Contains(s.sql, one) {
			continue
		}
		if err := await(ctx, one.name, one.isOldEnough); err != nil {
			return err
		}
	}
	return nil
}

func (s *servers) launch(name string, args ...string) (*server, error) {
	one, err := startServer(s.bin, s.dir, name, s.ports[0], args...)
	if err != nil {
		return nil, err
	}
	s.ports = s.ports[1:]
	s.all = append(s.all, one)
	return one, nil
}

func (s *servers) stop() {
	for _, one := range s.all {
		one.stop()
	}
	s.removeData()
}

// ended names the servers that are gone although nobody stopped them.
func (s *servers) ended() []string {
	var names []string
	for _, one := range s.all {
		if one.hasEnded() {
			names = append(names, fmt.Sprintf("%s (%v)", one.name, one.ended()))
		}
	}
	return names
}

// env is what the tests learn about the servers.
func (s *servers) env() []string {
	env := []string{"ASYNCLOCK_REQUIRE=1"}
	for _, target := range s.urls() {
		env = append(env, target.variable+"="+target.url)
	}
	return append(env, s.databaseEnv()...)
}

func (s *servers) urls() []target {
	return []target{
		{"ASYNCLOCK_REDIS_URL", redisURL(nil, s.standalone)},
		{"ASYNCLOCK_SENTINEL_URL", redisURL(url.Values{"master_set": {masterSet}}, s.sentinels...)},
		{"ASYNCLOCK_CLUSTER_URL", redisURL(url.Values{}, s.masters...)},
	}
}

// redisURL spells the addresses as rueidis.ParseURL reads them: the first is
// the host, the others are in the query.
func redisURL(query url.Values, all ...*server) string {
	for _, more := range all[1:] {
		query.Add("addr", more.addr)
	}
	// A query may hold colons as they are, and people read these.
	text := strings.ReplaceAll(query.Encode(), "%3A", ":")
	u := url.URL{Scheme: "redis", Host: all[0].addr, RawQuery: text}
	return u.String()
}

// A target is one kind of Redis, as a test sees it.
type target struct{ variable, url string }

// takesWrites checks that a client that knows only the URL can write.
func (t target) takesWrites(ctx context.Context) error {
	option, err := rueidis.ParseURL(t.url)
	if err != nil {
		return err
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.Do(ctx, client.B().Set().Key("testenv").Value("ready").PxMilliseconds(1).Build()).Error()
}
