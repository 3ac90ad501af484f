// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// needRedis skips a test where none is installed.
func needRedis(t *testing.T) Config {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		kit.Skip(t, err.Error())
	}
	return Config{Dir: t.TempDir()}
}

func TestARedisComesAndGoes(t *testing.T) {
	t.Parallel()
	r, err := StartRedis(t.Context(), needRedis(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	if err := r.Do(t.Context(), "SET", "key", "value"); err != nil {
		t.Fatal(err)
	}
	if err := r.Died(); err != nil {
		t.Errorf("Died of one that runs: got %v, want nil", err)
	}
	r.Kill()
	r.Kill() // as at the end of the test
	if err := r.Await(t.Context()); !errors.Is(err, errEnded) || errors.Is(err, errTaken) {
		t.Errorf("Await of one that has ended: got %v, want errEnded at once", err)
	}
	if err := r.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Text(t.Context(), "GET", "key"); err != nil || got != "" {
		t.Errorf("after the restart: got %q, %v, want nothing left in memory", got, err)
	}
}

func TestARedisThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	c := needRedis(t)
	c.Args = []string{"--no-such-directive", "yes"}
	if _, err := StartRedis(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no-such-directive") {
		t.Errorf("got %v, want what the server said", err)
	}
}

func TestATakenPortIsNoticed(t *testing.T) {
	t.Parallel()
	r, err := StartRedis(t.Context(), needRedis(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.Kill()
	another, err := net.Listen("tcp", r.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close()
	go func() { // ends with the listener
		for {
			conn, err := another.Accept()
			if err != nil {
				return
			}
			conn.Close() // or it would be taken for a server that is slow
		}
	}()
	if err := r.launch(t.Context()); !errors.Is(err, errTaken) {
		t.Errorf("got %v, want errTaken", err)
	}
}

// takesWrites checks that a client that knows only the URL can write.
func takesWrites(t *testing.T, url string) {
	t.Helper()
	option, err := rueidis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Do(t.Context(), client.B().Set().Key("key").Value("value").Build()).Error(); err != nil {
		t.Errorf("SET at %s: got %v, want no error", url, err)
	}
}

func TestSentinelsFailOver(t *testing.T) {
	t.Parallel()
	d, err := StartSentinel(t.Context(), needRedis(t), 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	takesWrites(t, d.URL())
	if err := d.FailOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if role, err := d.Nodes[1].Role(t.Context()); err != nil || role != "master" {
		t.Errorf("the replica: got %q, %v, want a master", role, err)
	}
}

func TestAClusterIsWholeAndMovesItsSlots(t *testing.T) {
	t.Parallel()
	d, err := StartCluster(t.Context(), needRedis(t), 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	takesWrites(t, d.URL())
	slot, err := d.Nodes[0].Text(t.Context(), "CLUSTER", "KEYSLOT", "key")
	if err != nil {
		t.Fatal(err)
	}
	moved := false // key is in the last third of the slots
	if err := d.MoveSlot(t.Context(), Move{slot, d.Nodes[2], d.Nodes[0], func() { moved = true }}); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Nodes[0].Text(t.Context(), "GET", "key"); err != nil || got != "value" || !moved {
		t.Errorf("GET on the new node: got %q, %v, want the value that was moved", got, err)
	}
	if _, err := d.AddReplica(t.Context(), d.Nodes[0]); err != nil {
		t.Errorf("AddReplica: got %v, want no error", err)
	}
}
