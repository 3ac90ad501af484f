// SPDX-License-Identifier: Apache-2.0

// Package zookeeper has only tests: store/zkstore against Spring Integration's own
// ZookeeperLockRegistry and Curator's InterProcessMutex.
//
// The Java side is the Maven project in this directory, apart from that of
// interop/spring because it has nothing in common with it but Spring: another
// server, another library, and no lines of releases to tell apart.
// ASYNCLOCK_ZOOKEEPER_PEER says where its build is, and ASYNCLOCK_ZOOKEEPER where a
// server is; go run ./internal/testenv builds the one, starts the other and says
// so.
package zookeeper
