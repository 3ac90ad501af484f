// SPDX-License-Identifier: Apache-2.0

// Package zookeeper has only tests: store/zkstore against Spring Integration's own
// ZookeeperLockRegistry, and Curator's InterProcessMutex, InterProcessReadWriteLock and LeaderSelector.
//
// Start reading in interop_test.go. The Java side is the Maven project in this
// directory, which shares with that of internal/test/interop/spring only how it is built and spoken
// to (internal/test/interop/javapeer): it has another server, another library, and no lines of
// releases to tell apart.
// ASYNCLOCK_ZOOKEEPER_PEER says where its build is, and ASYNCLOCK_ZOOKEEPER where a
// server is; go run ./internal/test/testenv builds the one, starts the other and says
// so.
package zookeeper
