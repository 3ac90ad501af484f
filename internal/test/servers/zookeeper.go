// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Tick is the tickTime of all ZooKeepers: a tenth of what is usual, so that tests of
// sessions that end need not wait long.
const Tick = 200 * time.Millisecond

// jar is where Debian's package zookeeper has the server. The jar's manifest names what else
// it needs.
const jar = "/usr/share/java/zookeeper.jar"

// classPath is the jar and two libraries that its manifest forgets: a server with TLS needs
// more of Netty, which the package brings along.
const classPath = jar + ":/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar"

// ZooKeeperPackage is the name of that package, which brings Java along.
const ZooKeeperPackage = "zookeeper"

// FindZooKeeper reports whether a server can be started here, and if not, why.
func FindZooKeeper() error {
	if _, err := exec.LookPath("java"); err != nil {
		return err
	}
	_, err := os.Stat(jar)
	return err
}

// A ZooKeeper is one server, alone or of an ensemble.
type ZooKeeper struct {
	Server

	// SecurePort is where a server that speaks TLS does so.
	SecurePort int
}

// StartZooKeeper starts a server that stands alone, with its data below dir, and waits
// until it serves. Options of the JVM count instead of those that tests have, which make it
// start soon and compile little.
func StartZooKeeper(ctx context.Context, dir string, options ...string) (*ZooKeeper, error) {
	return startZooKeeper(ctx, dir, func(int) string { return "" }, options...)
}

// secureConfig is what a server that speaks TLS has besides.
const secureConfig = `secureClientPort=%d
secureClientPortAddress=127.0.0.1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location=%s
ssl.keyStore.type=PEM
ssl.clientAuth=none
`

// StartSecureZooKeeper is StartZooKeeper for a server that speaks TLS on a second port.
// The file has its key, as PKCS #8, and its certificate, both in PEM; its name ends in
// .pem.
func StartSecureZooKeeper(ctx context.Context, dir, file string) (*ZooKeeper, error) {
	return startZooKeeper(ctx, dir, func(port int) string { return fmt.Sprintf(secureConfig, port, file) })
}

func startZooKeeper(ctx context.Context, dir string, more func(securePort int) string, options ...string) (*ZooKeeper, error) {
	own, err := os.MkdirTemp(dir, "zookeeper-")
	if err != nil {
		return nil, err
	}
	return onFreePorts(2, func(ports []int) (*ZooKeeper, error) {
		z, err := newZooKeeper(own, ports[0], more(ports[1]), options...)
		if err != nil {
			return nil, err
		}
		z.SecurePort = ports[1]
		return z, z.launch(ctx)
	})
}

// zooConfig is what every server's configuration has in common. Nothing is forced to a
// disk: what tests lose with the machine is no loss. Sessions may be as long as tests
// like.
const zooConfig = `tickTime=%d
initLimit=50
syncLimit=10
maxClientCnxns=0
minSessionTimeout=%d
maxSessionTimeout=3600000
admin.enableServer=false
4lw.commands.whitelist=srvr,conf
clientPortAddress=127.0.0.1
clientPort=%d
dataDir=%s
`

// newZooKeeper writes the configuration of a server, which is not started yet. An
// election does not wait longer than it must.
func newZooKeeper(dir string, port int, more string, options ...string) (*ZooKeeper, error) {
	tick, file := Tick.Milliseconds(), filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf(zooConfig, tick, tick, port, dir) + more
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	z := &ZooKeeper{Server: Server{Name: "ZooKeeper", Addr: address(port), Dir: dir}}
	z.command = func() *exec.Cmd {
		return exec.Command("java", slices.Concat([]string{
			"-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dzookeeper.forceSync=no", "-Dzookeeper.skipACL=no", "-Dznode.container.checkIntervalMs=1000",
			"-Dzookeeper.extendedTypesEnabled=false", "-Dzookeeper.fastleader.minNotificationInterval=50",
		}, options, []string{"-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", file})...)
	}
	z.check = z.serves
	return z, nil
}

// serves checks that a server serves, and that its data are ours.
func (z *ZooKeeper) serves(ctx context.Context) error {
	text, err := say(ctx, z.Addr, "conf")
	if err == nil && !strings.Contains(text, "dataDir="+z.Dir+string(filepath.Separator)) {
		err = fmt.Errorf("the server at %s says: %s", z.Addr, text)
	}
	return err
}

// ZooKeeperVersion asks a server for its version.
func ZooKeeperVersion(ctx context.Context, addr string) (string, error) {
	text, err := say(ctx, addr, "srvr")
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(text, "version: ")
	version, _, _ := strings.Cut(rest, "-")
	return version, nil
}

// errNotServing is about a server that has no leader, or is one yet to be.
var errNotServing = errors.New("not serving")

// mode asks the server what it is: standalone, leader or follower.
func (z *ZooKeeper) mode(ctx context.Context) (string, error) {
	text, err := say(ctx, z.Addr, "srvr")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if mode, found := strings.CutPrefix(line, "Mode: "); found {
			return strings.TrimSpace(mode), nil
		}
	}
	return "", errNotServing
}

// say says a word to a server, and returns all that it says then.
func say(ctx context.Context, addr, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // it has said all
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := conn.Write([]byte(word)); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	return string(text), err
}
