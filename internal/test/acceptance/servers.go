// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

// What some tests do to Redis would disturb all others on the same server. They
// start servers of their own, where tests with servers are wanted at all.

// A server is a redis-server process that ends with the test.
type server struct {
	host, port string
	encryption *redistest.Encryption
	client     rueidis.Client // connected to this one, whatever else it is part of
}

func (s *server) addr() string { return net.JoinHostPort(s.host, s.port) }

// address is that of the server for whoever may do everything.
func (s *server) address() address {
	if s.encryption != nil {
		return address{"rediss://" + s.addr(), s.encryption.Dir}
	}
	return address{url: "redis://" + s.addr()}
}

// Ports of our own are below those that systems give to outgoing connections,
// and a Cluster node listens on one more, 10000 above.
const (
	firstPort = 10100
	lastPort  = 11999
	busOffset = 10000
)

// startServer starts one that keeps nothing on disk, with more arguments as on
// its command line. If it can't encrypt what is to be, the test is skipped.
func startServer(t *testing.T, e *redistest.Encryption, args ...string) *server {
	t.Helper()
	kit.Require(t, "ASYNCLOCK_REDIS_URL")
	program, err := exec.LookPath("redis-server")
	if err != nil {
		kit.Skip(t, "no redis-server is in PATH")
	}
	for range 5 { // somebody may take the port before the server does
		port := freePort(t)
		config := slices.Concat(args, e.Args(port), []string{"--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "", "--acllog-max-len", "1000"})
		var said kit.Journal
		cmd := exec.Command(program, config...)
		cmd.Stdout, cmd.Stderr = &said, &said
		s := &server{host: "127.0.0.1", port: port, encryption: e}
		if s.start(t, cmd) {
			return s
		}
		if e.Unknown(said.String()) {
			t.Skip("left out: this redis-server was built without TLS")
		}
	}
	t.Fatal("redis-server does not start")
	return nil
}

// start starts the process. It returns false if that ends instead of answering.
func (s *server) start(t *testing.T, cmd *exec.Cmd) bool {
	t.Helper()
	option := redisOption(t, s.address())
	option.ForceSingleClient = true
	process := launch(t, cmd)
	want := fmt.Sprintf("process_id:%d\r\n", process.Child.Pid)
	for {
		select {
		case <-process.Ended():
			return false
		case <-time.After(10 * time.Millisecond):
		}
		client, err := rueidis.NewClient(option)
		if err != nil {
			continue // not yet
		}
		if info, err := client.Do(t.Context(), client.B().Info().Section("server").Build()).ToString(); err != nil || !strings.Contains(info, want) {
			client.Close() // another process is there
			return false
		}
		t.Cleanup(client.Close)
		s.client = client
		return true
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if isFree(port) && isFree(port+busOffset) {
			return strconv.Itoa(port)
		}
	}
	t.Fatal("no free port")
	return ""
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return err == nil && l.Close() == nil
}

// ask sends a command to this server and returns the reply as text.
func (s *server) ask(t *testing.T, words ...string) string {
	t.Helper()
	reply, err := s.try(t.Context(), words...)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return reply
}

func (s *server) try(ctx context.Context, words ...string) (string, error) {
	reply, err := s.client.Do(ctx, s.client.B().Arbitrary(words...).Build()).ToAny()
	return fmt.Sprint(reply), err
}

// A deployment is servers of one test's own.
type deployment struct {
	address            // of whoever may do everything
	nodes    []*server // that have keys, or copies of them
	sentinel *server   // or nil
	rights   []string  // that a user needs there
	// refused is what a user is refused and does not need: rueidis asks, by the way,
	// whether this is a Cluster, and introduces itself. A refusal is an answer, too.
	refused []string
}

// startAlone starts one server.
func startAlone(t *testing.T, e *redistest.Encryption) *deployment {
	t.Helper()
	s := startServer(t, e)
	always, _ := rights(t)
	return &deployment{address: s.address(), nodes: []*server{s}, rights: always, refused: []string{"cluster", "client"}}
}

const masterSet = "stories"

// startSentinelSet starts a primary with one replica and one sentinel.
func startSentinelSet(t *testing.T, e *redistest.Encryption) *deployment {
	t.Helper()
	fast := []string{"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"}
	primary := startServer(t, e, fast...)
	replica := startServer(t, e, append(fast, "--replicaof", primary.host, primary.port)...)
	await(t, "the replica", func() bool {
		return strings.Contains(replica.ask(t, "INFO", "replication"), "master_link_status:up")
	})
	config := filepath.Join(t.TempDir(), "sentinel.conf") // it insists on a file to write to
	text := fmt.Sprintf("sentinel monitor %[1]s %s %s 1\nsentinel down-after-milliseconds %[1]s 1000\nsentinel failover-timeout %[1]s 1000\n",
		masterSet, primary.host, primary.port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := startServer(t, e, config, "--sentinel")
	await(t, "the sentinel", func() bool {
		reply, err := sentinel.try(t.Context(), "SENTINEL", "REPLICAS", masterSet)
		return err == nil && strings.Contains(reply, "master-link-status:ok")
	})
	at := sentinel.address()
	at.url += "?master_set=" + masterSet
	always, _ := rights(t)
	return &deployment{
		address: at, nodes: []*server{primary, replica}, sentinel: sentinel,
		rights: append(always, "+role"), refused: []string{"cluster", "client"},
	}
}

// failOver makes the replica the primary and waits until it is.
func (d *deployment) failOver(t *testing.T) {
	t.Helper()
	before := d.sentinel.ask(t, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterSet)
	await(t, "the failover", func() bool {
		if d.sentinel.ask(t, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterSet) != before {
			return true
		}
		// It refuses while the last one is not over, and gives up when the machine is
		// so busy that a step takes longer than its timeout. So it is asked again.
		_, _ = d.sentinel.try(t.Context(), "SENTINEL", "FAILOVER", masterSet)
		return false
	})
}

// startCluster starts a Cluster of three masters.
func startCluster(t *testing.T, e *redistest.Encryption) *deployment {
	t.Helper()
	const masters, slots, nodeTimeout = 3, 16384, 2 * time.Second
	nodes := make([]*server, masters)
	for i := range nodes {
		nodes[i] = startServer(t, e, "--cluster-enabled", "yes", "--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10))
		nodes[i].ask(t, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		add := []string{"CLUSTER", "ADDSLOTS"}
		for slot := slots * i / masters; slot < slots*(i+1)/masters; slot++ {
			add = append(add, strconv.Itoa(slot))
		}
		nodes[i].ask(t, add...)
	}
	var met time.Time
	await(t, "the Cluster", func() bool {
		// Again and again: a busy machine may not get through a handshake in time, and
		// then the two have forgotten each other.
		if time.Since(met) > nodeTimeout {
			met = time.Now()
			for _, n := range nodes[1:] {
				nodes[0].ask(t, "CLUSTER", "MEET", n.host, n.port)
			}
		}
		for _, n := range nodes {
			info := n.ask(t, "CLUSTER", "INFO")
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return false
			}
		}
		return true
	})
	_, inCluster := rights(t)
	return &deployment{address: nodes[0].address(), nodes: nodes, rights: inCluster, refused: []string{"client"}}
}

// moveSlot moves a slot from one master to another, key by key, as the tools of
// Redis do.
func moveSlot(t *testing.T, slot string, from, to *server) {
	t.Helper()
	fromID, toID := from.ask(t, "CLUSTER", "MYID"), to.ask(t, "CLUSTER", "MYID")
	to.ask(t, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	from.ask(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	for {
		keys, err := from.client.Do(t.Context(), from.client.B().Arbitrary("CLUSTER", "GETKEYSINSLOT", slot, "100").Build()).AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		from.ask(t, append([]string{"MIGRATE", to.host, to.port, "", "0", "1000", "KEYS"}, keys...)...)
	}
	to.ask(t, "CLUSTER", "SETSLOT", slot, "NODE", toID) // first, or both would disown it
	from.ask(t, "CLUSTER", "SETSLOT", slot, "NODE", toID)
}
