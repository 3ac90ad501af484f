// SPDX-License-Identifier: Apache-2.0

// Package zkserver starts ZooKeeper servers for tests, alone or as an ensemble,
// and kills them. They listen on 127.0.0.1, write below one directory, and never
// outlive the process.
package zkserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/proc"
)

// Tick is the tickTime of all servers: a tenth of what is usual, so that tests of
// sessions that end need not wait long.
const Tick = 200 * time.Millisecond

// jar is where Debian's package zookeeper has the server. What it needs besides,
// its manifest names.
const jar = "/usr/share/java/zookeeper.jar"

// classPath is what its manifest names, and what it forgets: what speaks TLS needs
// more of Netty, which the package brings along.
const classPath = jar + ":/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar"

// Package is the name of that package, which brings Java along.
const Package = "zookeeper"

// Find reports whether a server can be started here, and if not, why.
func Find() error {
	if _, err := exec.LookPath("java"); err != nil {
		return err
	}
	_, err := os.Stat(jar)
	return err
}

// A Server is one process.
type Server struct {
	Addr string // for clients
	dir  string

	process *proc.Process
}

// errEnded is in errors about a server that has ended by itself.
var errEnded = errors.New("the server has ended")

// config is what every server's configuration has in common. Nothing is forced to
// a disk: what tests lose with the machine is no loss. Sessions may be as long as
// tests like. An election does not wait longer than it must.
const config = `tickTime=%d
initLimit=50
syncLimit=10
maxClientCnxns=0
minSessionTimeout=%d
maxSessionTimeout=3600000
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok
clientPortAddress=127.0.0.1
clientPort=%d
dataDir=%s
`

// Start starts a server that stands alone, in a directory of its own, and waits
// until it serves.
func Start(ctx context.Context, dir string, port int) (*Server, error) {
	return startAlone(ctx, dir, port, "")
}

func startAlone(ctx context.Context, dir string, port int, more string) (*Server, error) {
	s, err := launch(dir, port, more)
	if err != nil {
		return nil, err
	}
	if err := s.await(ctx, "standalone"); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

// secureConfig is what a server that speaks TLS has besides.
const secureConfig = `secureClientPort=%d
secureClientPortAddress=127.0.0.1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location=%s
ssl.keyStore.type=PEM
ssl.clientAuth=none
`

// StartSecure is Start for a server that speaks TLS on a second port. The file
// has its key, as PKCS #8, and its certificate, both in PEM; its name ends in .pem.
func StartSecure(ctx context.Context, dir string, port, securePort int, file string) (*Server, error) {
	return startAlone(ctx, dir, port, fmt.Sprintf(secureConfig, securePort, file))
}

// launch starts a process and does not wait for it.
func launch(dir string, port int, more string) (*Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), dir: dir}
	tick := Tick.Milliseconds()
	text := fmt.Sprintf(config, tick, tick, port, dir) + more
	if err := os.WriteFile(s.file("zoo.cfg"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	return s, s.Restart()
}

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

// Restart starts the process again, after Kill, with what it had on its disk.
func (s *Server) Restart() error {
	log, err := os.OpenFile(s.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has one of its own
	cmd := exec.Command("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dzookeeper.forceSync=no", "-Dzookeeper.skipACL=no", "-Dznode.container.checkIntervalMs=1000",
		"-Dzookeeper.extendedTypesEnabled=false", "-Dzookeeper.fastleader.minNotificationInterval=50",
		"-cp", classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", s.file("zoo.cfg"))
	cmd.Stdout, cmd.Stderr = log, log
	process, err := proc.Start(cmd)
	if err != nil {
		return err
	}
	s.process = process
	return nil
}

// Kill ends the process as kill -9 does, and waits until it is gone.
func (s *Server) Kill() {
	_ = s.process.Kill() // fails only if it just went
}

// Pause stops the process, until Resume.
func (s *Server) Pause() error { return s.process.Pause() }

// Resume lets a paused process run on.
func (s *Server) Resume() error { return s.process.Resume() }

// Ended reports whether the process is gone.
func (s *Server) Ended() bool {
	select {
	case <-s.process.Ended():
		return true
	default:
		return false
	}
}

// readyIn is how long a server may take to come up on a busy machine.
const readyIn = time.Minute

// await waits until the server serves in that mode: standalone, leader or
// follower. The empty mode is any.
func (s *Server) await(ctx context.Context, mode string) error {
	ctx, cancel := context.WithTimeout(ctx, readyIn)
	defer cancel()
	for {
		got, err := s.mode(ctx)
		switch {
		case err == nil && (mode == "" || got == mode):
			return nil
		case s.Ended():
			log, _ := os.ReadFile(s.file("log"))
			return fmt.Errorf("ZooKeeper on %s: %w: %s", s.Addr, errEnded, log)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("ZooKeeper on %s is %q, not %q (%w): %w", s.Addr, got, mode, err, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// errNotServing: the server is there, and has no leader or is one yet to be.
var errNotServing = errors.New("not serving")

// mode asks the server what it is.
func (s *Server) mode(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // it has said all
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if mode, found := strings.CutPrefix(line, "Mode: "); found {
			return strings.TrimSpace(mode), nil
		}
	}
	return "", errNotServing
}
