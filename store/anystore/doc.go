// SPDX-License-Identifier: Apache-2.0

// Package anystore opens any of this library's stores by a URL, so that a program's configuration can say where its
// locks are. The command asynclock takes the same URLs.
//
//	redis://user:password@host:6379/0                        redisstore; rediss:// with TLS
//	redis://host1:26379?addr=host2:26379&master_set=main     Sentinel
//	redis://host1:6379?addr=host2:6379                       Cluster
//	unix:///run/redis/redis.sock                             redisstore
//	postgres://user:password@host:5432/database              sqlstore, with a pool of pgx; postgresql:// too
//	mysql://user:password@host:3306/database                 sqlstore; mariadb:// too
//	zk://user:password@host1:2181,host2:2181/root            zkstore; zks:// with TLS
//
// A URL without a host is refused, because each machine would take itself for it. A socket of PostgreSQL is
// postgres:///database?host=/run/postgresql.
//
// Spring's registries have locks of their own:
//
//	spring+redis://host:6379/0?registry=locks                springredis; spring+rediss://, spring+unix://
//	spring+postgres://host:5432/database?region=DEFAULT      springsql; spring+mysql://
//
// Locks in ZooKeeper are shared with Spring in any case.
//
// Special characters in user, password and parameters are percent-encoded. These parameters are options of the
// stores; durations are written as 10s or 500ms:
//
//	redis            prefix, counter_ttl, failover_grace (a duration, or off)
//	postgres, mysql  prefix, poll_interval, notifications (off: poll)
//	zk               session_timeout, tick_time, short_ttls (on)
//	spring+redis     registry (required), lock_type (spin or pubsub), poll_interval
//	spring+postgres, spring+mysql
//	                 prefix, region, poll_interval, spring_version (6 or 7), repository_ttl
//
// All others are those of the client library: redisstore.OpenURL lists rueidis', and those of [pgx] and
// [go-sql-driver] include sslmode and tls. A parameter that nobody knows is refused, by the database server if it
// is one.
//
// There is no URL for memstore, because its locks exclude nobody in another process.
//
// [pgx]: https://pkg.go.dev/github.com/jackc/pgx/v5/pgxpool#ParseConfig
// [go-sql-driver]: https://github.com/go-sql-driver/mysql#parameters
package anystore
