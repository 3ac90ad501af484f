// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// TestRunbookOfMaintenance: the page shows what an operator types and sees, and who waits in the pause has its key when the
// operator ends it. Without that the pause would be longer than the test waits for anything.
func TestRunbookOfMaintenance(t *testing.T) {
	t.Parallel()
	kit.Require(t, "ASYNCLOCK_REDIS_URL") // where servers are
	for name, play := range map[string]func(*testing.T) *drill{
		"a Sentinel set": playSentinelMaintenance, "a Cluster": playClusterMaintenance, "a single server": playRestart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t)
			s.ends(name)
		})
	}
}

// longestTTL is that of the clients: the pause is so long if nobody ends it.
const longestTTL = 2 * time.Minute

// A drill is a maintenance of servers that the scene has for itself.
type drill struct {
	*scene
	holder *asynclock.Lease // from before
	waiter *asynclock.Client
	began  time.Time // when the first key was not granted
	got    chan error
}

const (
	heldKey   = "order:42"
	wantedKey = "order:44"
)

// newDrill begins a scene on servers that have granted keys for long.
func newDrill(t *testing.T, url string, nodes ...*servers.Redis) *drill {
	t.Helper()
	option, err := redisconn.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	prefix, mark := "runbook-"+uuid.NewString(), "?"
	redistest.OnServer(t, option).Acquaint(t, prefix, longestTTL)
	if strings.Contains(url, mark) {
		mark = "&"
	}
	s := &drill{scene: setScene(t, maintenance, url+mark+"prefix="+prefix), got: make(chan error, 1)}
	s.names = append(s.names, servers.MasterSet+"\n", "mymaster\n", "Valkey is", "Redis is")
	for i, node := range nodes {
		for _, between := range []string{":", " "} {
			s.names = append(s.names, "127.0.0.1"+between+node.Port(), address(i)+between+"6379")
		}
		s.names = append(s.names, "-p "+node.Port(), "-h "+address(i))
	}
	s.holder = s.take(heldKey, "billing on app-1, pid 4711")
	s.waiter = s.service("shipping on app-2, pid 815")
	return s
}

// address is that of a server on the page.
func address(i int) string { return fmt.Sprintf("10.0.0.%d", i+1) }

// types sends a command to a server, and writes down what an operator types and sees.
func (s *drill) types(server *servers.Redis, words ...string) {
	s.Helper()
	text, err := server.Text(s.Context(), words...)
	if err != nil {
		s.Fatal(err)
	}
	s.writes("$ redis-cli -p "+server.Port()+" "+strings.Join(words, " ")+"\n", text+"\n")
}

// looks shows what a server says about itself, and returns it.
func (s *drill) looks(server *servers.Redis, section, fact string) string {
	s.Helper()
	facts, err := server.Facts(s.Context(), "INFO", section)
	if err != nil {
		s.Fatal(err)
	}
	s.writes("$ redis-cli -p "+server.Port()+" INFO "+section+" | grep ^"+fact+":\n", fact+":"+facts[fact]+"\n")
	return facts[fact]
}

// leads waits until a server is a primary, and shows it. It does again what makes it one.
func (s *drill) leads(server *servers.Redis, again func()) {
	s.Helper()
	kit.Eventually(s.T, "the server is a primary", func() bool {
		again()
		role, err := server.Role(s.Context())
		return err == nil && role == "master"
	})
	s.looks(server, "replication", "role")
}

// endsGrace looks at the grace as soon as somebody waits in it, and ends it with what the command says.
func (s *drill) endsGrace(proven bool) {
	s.Helper()
	go func() {
		_, err := s.waiter.Lock(s.Context(), wantedKey)
		s.got <- err
	}()
	toEnd := regexp.MustCompile(`(?s)^history +([0-9a-f]{8}).*\nTo end it: asynclock grace end `)
	if !proven {
		toEnd = regexp.MustCompile(`(?s)^history +([0-9a-f]{8}).*\nNothing is proven`)
	}
	var shown, history []string
	kit.Eventually(s.T, "the grace can be ended", func() bool {
		got := s.run(s.T, "grace").stdout
		history = toEnd.FindStringSubmatch(got)
		shown = []string{"$ asynclock grace\n", got}
		return history != nil && strings.Contains(got, "\nsince ")
	})
	s.writes(shown...)
	args := []string{"grace", "end", history[1]}
	if !proven {
		args = append(args, "--i-know-that-nothing-was-lost")
	}
	var got result
	kit.Eventually(s.T, "the grace is ended", func() bool { // on a busy machine the old primary may not have answered in time
		got = s.run(s.T, args...)
		return got.code != 75
	})
	got.want(s.T, 0)
	s.writes("$ asynclock "+strings.Join(args, " ")+"\n", got.stdout)
	s.goOn()
}

// goOn expects that keys are granted, and that who had one before still has it.
func (s *drill) goOn() {
	s.Helper()
	ended := time.Now()
	select {
	case err := <-s.got:
		if err != nil {
			s.Fatal(err)
		}
	case <-time.After(longestTTL / 2):
		s.Fatal("who waits has not got its key")
	}
	s.Logf("keys were not granted for %v, %v of it after the end", time.Since(s.began), time.Since(ended))
	if err := s.holder.Renew(s.Context(), 15*time.Second); err != nil {
		s.Errorf("the holder from before: %v", err)
	}
	s.hasHolder(heldKey, "billing on app-1, pid 4711")
	s.hasHolder(wantedKey, "shipping on app-2, pid 815")
	s.sees("grace")
}

func playSentinelMaintenance(t *testing.T) *drill {
	t.Helper()
	d := redistest.StartSentinel(t, servers.Config{Patience: 30 * time.Second, Rewritable: true}) // the pause of clients has to be over before that
	old, next, sentinel := d.Nodes[0], d.Nodes[1], d.Sentinels[0]
	s := newDrill(t, d.URL(), old, next)
	s.names = append(s.names, "-p "+sentinel.Port(), "-h "+address(2)+" -p 26379")
	s.began = time.Now()
	s.types(old, "CLIENT", "PAUSE", "60000", "WRITE")
	kit.Eventually(t, "the replica is in step", func() bool {
		ours, err := old.Facts(t.Context(), "INFO", "replication")
		theirs, err2 := next.Facts(t.Context(), "INFO", "replication")
		return err == nil && err2 == nil && ours["master_repl_offset"] == theirs["slave_repl_offset"]
	})
	if ours, theirs := s.looks(old, "replication", "master_repl_offset"), s.looks(next, "replication", "slave_repl_offset"); ours != theirs {
		t.Logf("the offset went from %s to %s between two looks", ours, theirs)
	}
	s.types(sentinel, "SENTINEL", "FAILOVER", servers.MasterSet)
	s.leads(next, func() {
		_ = sentinel.Do(t.Context(), "SENTINEL", "FAILOVER", servers.MasterSet) // it gives up where a step takes long, and refuses while it is at it
	})
	s.types(old, "REPLICAOF", "127.0.0.1", next.Port())
	s.types(old, "CLIENT", "UNPAUSE")
	s.types(old, "CONFIG", "REWRITE")
	s.endsGrace(true)
	return s
}

func playClusterMaintenance(t *testing.T) *drill {
	t.Helper()
	d := redistest.StartCluster(t, servers.Config{Patience: 5 * time.Second}, 2)
	old := d.Nodes[0] // it has the slots of both keys
	next, err := d.AddReplica(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	s := newDrill(t, d.URL(), old, next)
	id, err := old.Text(t.Context(), "CLUSTER", "MYID")
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range d.Nodes {
		kit.Eventually(t, node.Name+" knows the replica, or would not vote for it", func() bool {
			replicas, err := node.List(t.Context(), "CLUSTER", "REPLICAS", id)
			return err == nil && len(replicas) == 1
		})
	}
	s.began = time.Now()
	s.types(next, "CLUSTER", "FAILOVER")
	s.leads(next, func() {})
	s.endsGrace(true)
	return s
}

func playRestart(t *testing.T) *drill {
	t.Helper()
	server := redistest.Start(t, servers.Config{Args: []string{"--appendonly", "yes"}})
	s := newDrill(t, server.URL(), server)
	s.looks(server, "persistence", "aof_enabled")
	s.looks(server, "persistence", "aof_last_write_status")
	before := s.looks(server, "replication", "master_replid")
	s.began = time.Now()
	_ = server.Do(t.Context(), "SHUTDOWN") // it hangs up instead of an answer
	kit.Eventually(t, "the server has ended", server.Ended)
	s.writes("$ redis-cli -p "+server.Port()+" SHUTDOWN\n", "$ tail -3 redis.log | cut -d' ' -f7-\n", lastWords(t, server))
	s.writes("$ systemctl start redis\n")
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.endsGrace(false)
	if !strings.Contains(s.seen.String(), "\nbefore       "+before+"\n") {
		t.Errorf("got %s, want that the history before was %s", s.seen.String(), before)
	}
	return s
}

// lastWords are the last lines of a server's log, without the process and the time.
func lastWords(t *testing.T, server *servers.Redis) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(server.Dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var words strings.Builder
	for _, line := range lines[max(0, len(lines)-3):] {
		const before = 6 // 4711:M 28 Nov 2026 22:50:01.123 #
		if fields := strings.SplitN(line, " ", before+1); len(fields) > before {
			words.WriteString(fields[before] + "\n")
		}
	}
	return words.String()
}
