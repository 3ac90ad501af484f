// SPDX-License-Identifier: Apache-2.0

// Package spring has only tests: store/springredis against Spring Integration's
// own RedisLockRegistry, and store/sqlstore/springsql against its JdbcLockRegistry, in
// releases of each kind that docs/stores/spring.md speaks of: two of them every day, all
// with ASYNCLOCK_NIGHTLY=1.
//
// Start reading in exclusion_test.go; world_test.go, and jdbc_world_test.go for a
// database, say what a test has at hand. The Java side is the Maven project in this
// directory, and internal/test/interop/javapeer. The tests share one process for each release, and
// each has a registry there, with threads of its own. ASYNCLOCK_SPRING says where its
// builds are; ASYNCLOCK_REDIS_URL, ASYNCLOCK_POSTGRES_URL and ASYNCLOCK_MYSQL_URL where
// servers are. go run ./internal/test/testenv builds the one, starts the others and says so.
package spring
