// SPDX-License-Identifier: Apache-2.0

// Package migrate has the code that the pages in docs/migrate show: the same work with another lock
// library and with this one, and the release between, which takes both locks. It is a module of its
// own, because no user of this library needs the others.
//
// redsync, redislock and rueidislock run on miniredis. The code for etcd is only compiled.
package migrate
