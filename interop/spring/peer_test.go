// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/javapeer"
	"github.com/asynclock/asynclock-go/internal/needed"
	"github.com/asynclock/asynclock-go/store/springredis"
)

// A setup is how a RedisLockRegistry is made.
type setup struct {
	line     string // of releases: a directory below ASYNCLOCK_SPRING
	registry string
	mode     springredis.LockType
	ttl      time.Duration
	renew    bool     // by itself
	options  []string // of the JVM
}

// startPeer starts a process with a RedisLockRegistry, which ends with the test.
func startPeer(t *testing.T, s setup) *javapeer.Peer {
	t.Helper()
	host, port, err := net.SplitHostPort(serverOption(t).InitAddress[0])
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"redis", host, port, s.registry, s.mode.String(), fmt.Sprint(s.ttl.Milliseconds())}
	if s.renew {
		args = append(args, "renew")
	}
	return warm(launch(t, s.line, s.options, args...))
}

// launch starts a process, of a line of releases, with options of the JVM and
// arguments of Peer.java. It ends with the test.
func launch(t *testing.T, line string, options []string, arguments ...string) *javapeer.Peer {
	t.Helper()
	jar := filepath.Join(needed.Variable(t, "ASYNCLOCK_SPRING"), "spring-"+line, "peer.jar")
	return javapeer.Start(t, jar, options, arguments...)
}

// warm has the peer lock a key for the first time, which takes a JVM long.
func warm(p *javapeer.Peer) *javapeer.Peer {
	p.Do("lock", "the first one")
	p.Do("unlock", "the first one")
	return p
}

func serverOption(t *testing.T) rueidis.ClientOption {
	t.Helper()
	option, err := rueidis.ParseURL(needed.Variable(t, "ASYNCLOCK_REDIS_URL"))
	if err != nil {
		t.Fatal(err)
	}
	return option
}
