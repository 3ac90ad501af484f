// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/interop/javapeer"
	"github.com/asynclock/asynclock-go/internal/test/kit"
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

// processes are one for each line of releases, and more where a test needs other
// options of the JVM. Each plays with all tests at once.
var processes javapeer.Shared

// openPeer makes a RedisLockRegistry in the process that the tests share.
func openPeer(t *testing.T, s setup) *javapeer.Peer {
	t.Helper()
	return s.open(t, processes.Process(t, jar(t, s.line), s.options...))
}

// open makes a RedisLockRegistry, which ends with the test.
func (s setup) open(t *testing.T, process *javapeer.Process) *javapeer.Peer {
	t.Helper()
	host, port, err := net.SplitHostPort(serverOption(t).InitAddress[0])
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"redis", host, port, s.registry, s.mode.String(), fmt.Sprint(s.ttl.Milliseconds())}
	if s.renew {
		args = append(args, "renew")
	}
	return warm(process.Open(t, args...))
}

// jar is the program of a line of releases.
func jar(t *testing.T, line string) string {
	t.Helper()
	return filepath.Join(kit.Require(t, "ASYNCLOCK_SPRING"), "spring-"+line, "peer.jar")
}

// warm has the peer lock a key for the first time, which takes it long.
func warm(p *javapeer.Peer) *javapeer.Peer {
	p.Do("lock", "the first one")
	p.Do("unlock", "the first one")
	return p
}

func serverOption(t *testing.T) rueidis.ClientOption {
	t.Helper()
	option, err := rueidis.ParseURL(kit.Require(t, "ASYNCLOCK_REDIS_URL"))
	if err != nil {
		t.Fatal(err)
	}
	return option
}
