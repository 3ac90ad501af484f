// SPDX-License-Identifier: Apache-2.0

// Package spring has only tests: store/springredis against Spring Integration's
// own RedisLockRegistry, in releases of each kind that docs/spring.md speaks of.
//
// The Java side is the Maven project in this directory. ASYNCLOCK_SPRING says
// where its builds are, and ASYNCLOCK_REDIS_URL where a server is;
// go run ./internal/testenv builds the one, starts the other and says so.
package spring
