// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

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
)

// What some tests do to Redis would disturb all others on the same server. They
// start servers of their own, where tests with servers are wanted at all.

// A server is a redis-server process that ends with the test.
type server struct {
	host, port string
	client     rueidis.Client // connected to this one, whatever else it is part of
}

func (s *server) addr() string { return net.JoinHostPort(s.host, s.port) }
func (s *server) url() string  { return "redis://" + s.addr() }

// Ports of our own are below those that systems give to outgoing connections,
// and a Cluster node listens on one more, 10000 above.
const (
	firstPort = 10100
	lastPort  = 11999
	busOffset = 10000
)

// startServer starts one that keeps nothing on disk, with more arguments as on
// its command line.
func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	serverURL(t, "ASYNCLOCK_REDIS_URL")
	program, err := exec.LookPath("redis-server")
	if err != nil {
		leaveOut(t, "no redis-server is in PATH")
	}
	for range 5 { // somebody may take the port before the server does
		port := freePort(t)
		config := slices.Concat(args, []string{"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", ""})
		if s := tryServer(t, exec.Command(program, config...), port); s != nil {
			return s
		}
	}
	t.Fatal("redis-server does not start")
	return nil
}

// tryServer returns nil if the process ends instead of answering.
func tryServer(t *testing.T, cmd *exec.Cmd, port string) *server {
	t.Helper()
	s := &server{host: "127.0.0.1", port: port}
	process := launch(t, cmd)
	want := fmt.Sprintf("process_id:%d\r\n", process.Child.Pid)
	for {
		select {
		case <-process.Ended():
			return nil
		case <-time.After(10 * time.Millisecond):
		}
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{s.addr()}, ForceSingleClient: true, DisableCache: true,
		})
		if err != nil {
			continue // not yet
		}
		if info, err := client.Do(t.Context(), client.B().Info().Section("server").Build()).ToString(); err != nil || !strings.Contains(info, want) {
			client.Close() // another process is there
			return nil
		}
		t.Cleanup(client.Close)
		s.client = client
		return s
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

// A sentinelSet is a primary with one replica and one sentinel.
type sentinelSet struct {
	url      string
	sentinel *server
}

const masterSet = "stories"

func startSentinelSet(t *testing.T) *sentinelSet {
	t.Helper()
	fast := []string{"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"}
	primary := startServer(t, fast...)
	replica := startServer(t, append(fast, "--replicaof", primary.host, primary.port)...)
	await(t, "the replica", func() bool {
		return strings.Contains(replica.ask(t, "INFO", "replication"), "master_link_status:up")
	})
	config := filepath.Join(t.TempDir(), "sentinel.conf") // it insists on a file to write to
	text := fmt.Sprintf("sentinel monitor %[1]s %s %s 1\nsentinel down-after-milliseconds %[1]s 1000\nsentinel failover-timeout %[1]s 1000\n",
		masterSet, primary.host, primary.port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := startServer(t, config, "--sentinel")
	await(t, "the sentinel", func() bool {
		reply, err := sentinel.try(t.Context(), "SENTINEL", "REPLICAS", masterSet)
		return err == nil && strings.Contains(reply, "master-link-status:ok")
	})
	return &sentinelSet{url: sentinel.url() + "?master_set=" + masterSet, sentinel: sentinel}
}

// failOver makes the replica the primary and waits until it is.
func (s *sentinelSet) failOver(t *testing.T) {
	t.Helper()
	before := s.sentinel.ask(t, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterSet)
	await(t, "the failover", func() bool {
		if s.sentinel.ask(t, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterSet) != before {
			return true
		}
		// It refuses while the last one is not over, and gives up when the machine is
		// so busy that a step takes longer than its timeout. So it is asked again.
		_, _ = s.sentinel.try(t.Context(), "SENTINEL", "FAILOVER", masterSet)
		return false
	})
}

// startCluster starts a Cluster of three masters.
func startCluster(t *testing.T) []*server {
	t.Helper()
	const masters, slots = 3, 16384
	nodes := make([]*server, masters)
	for i := range nodes {
		nodes[i] = startServer(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
		nodes[i].ask(t, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		add := []string{"CLUSTER", "ADDSLOTS"}
		for slot := slots * i / masters; slot < slots*(i+1)/masters; slot++ {
			add = append(add, strconv.Itoa(slot))
		}
		nodes[i].ask(t, add...)
	}
	for _, n := range nodes[1:] {
		nodes[0].ask(t, "CLUSTER", "MEET", n.host, n.port)
	}
	await(t, "the Cluster", func() bool {
		for _, n := range nodes {
			info := n.ask(t, "CLUSTER", "INFO")
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return false
			}
		}
		return true
	})
	return nodes
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
