// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2/server"
)

// TestBadCommandLines: each exits with 64, says what is wrong on stderr and
// where to read more, and prints nothing on stdout.
func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	cases := []struct {
		args string
		says string
	}{
		{"bogus", `unknown command "bogus"`},
		{"ls --bogus", "unknown flag: --bogus"},
		{"ls a b", "accepts at most 1 arg"},
		{"version 2", "unknown command"},
		{"inspect a b", "give one KEY"},
		{"unlock --force", "give one KEY"},
		{"unlock x", "give --force if that is meant"},
		{"unlock --force x", "give --token N"},
		{"unlock --force --token -1 x", "--token is negative"},
		{"unlock --force --token x x", "invalid argument"},
		{"run x --", "give one KEY, and after -- the command to run"},
		{"run x true", "give one KEY, and after -- the command to run"},
		{"run x y -- true", "give one KEY, and after -- the command to run"},
		{"run --key x -- true", "unknown flag: --key"},
		{"run x --wait -1s -- true", "not \"forever\""},
		{"run x -n -w 1 -- true", "--nonblock and --wait exclude each other"},
		{"run x -E 256 -- true", "not a number from 0 to 255"},
		{"run x --note " + strings.Repeat("n", 1025) + " -- true", "--note is longer than 1024 bytes"},
		{"run x --note n --shared -- true", "--note is for whoever has all of the key"},
		{"hold x --note n --permits 1 --of 2", "--note is for whoever has all of the key"},
		{"hold x -- true", "give one KEY"},
		{"hold x --ttl 1ms", "invalid option"},
		{"wait", "give one KEY"},
		{"wait x --free --held", "--free and --held exclude each other"},
		{"wait \xff", "invalid key"},
		{"note", "give one KEY"},
		{"note \xff --follow", "invalid key"},
		{"ui a b", "accepts at most 1 arg"},
		{"ui --listen 8080", "missing port"},
		// A page that others can reach would need a login of its own.
		{"ui --listen :0", "on this machine alone"},
		{"ui --listen 0.0.0.0:0", "on this machine alone"},
		{"ui --listen [::]:0", "on this machine alone"},
		{"ui --listen 192.0.2.1:0", "on this machine alone"},
		{"ui --listen host.example:0", "on this machine alone"},
		{"watch a b", "accepts at most 1 arg"},
		{"watch --interval 1ms", "--interval is shorter than 50ms"},
		{"watch \xff", "invalid key"},
		{"run x --grace -1s -- true", "--grace is negative"},
		{"run x --ttl 1ms -- true", "invalid option"},
		{"run x --max-hold 1ms -- true", "invalid option"},
		{"run x --min-hold -1s -- true", "invalid option"},
		{"run x --holder \x07 -- true", "invalid option"},
		{"run " + strings.Repeat("k", 513) + " -- true", "invalid key"},
		{"inspect \xff", "invalid key"},
		{"doctor k", "unknown command"},
		{"doctor --ttl 0s", "invalid option"},
		{"doctor --ttl x", "invalid argument"},
		{"doctor --redis http://127.0.0.1", "begins with none of"},
		{"why", "give one KEY"},
		{"why \xff", "invalid key"},
		{"ls --prefix a{b", "invalid option"},
		{"ls --redis http://127.0.0.1", "begins with none of"},
		{"ls --store zk://127.0.0.1:1 --prefix x", "means nothing to ZooKeeper; --prefix is its parameter prefix"},
		{"ls --redis redis://127.0.0.1:1?master=main", "a parameter that means nothing"},
		{"ls --redis redis://127.0.0.1:1?master_set=main;db=1", "can't be read"},
		{"ls --redis redis://127.0.0.1:1?addr=127.0.0.2", "an addr has no port"},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			got := redis.run(t, strings.Split(c.args, " ")...)
			got.want(t, 64, c.says, "--help'.")
			if got.stdout != "" {
				t.Errorf("got stdout %q, want none", got.stdout)
			}
			if lines := strings.Count(got.stderr, "\n"); lines != 2 {
				t.Errorf("got %d lines on stderr, want 2: %s", lines, got.stderr)
			}
		})
	}
}

func TestNoServerNamed(t *testing.T) {
	t.Setenv("ASYNCLOCK_REDIS_URL", "")
	t.Setenv("ASYNCLOCK_STORE", "")
	run(t, "ls").want(t, 64, "give --store URL or set ASYNCLOCK_STORE")
}

func TestHelpIsOnStdout(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"", "--help", "run --help", "help inspect", "ls -h", "unlock --help", "demo --help"} {
		got := run(t, strings.Fields(args)...)
		got.want(t, 0)
		if !strings.Contains(got.stdout, "Usage:") {
			t.Errorf("asynclock %s: got stdout %q, want a usage", args, got.stdout)
		}
		if strings.Contains(got.stdout, "demo-worker") || strings.Contains(got.stdout, "run-guard") {
			t.Errorf("asynclock %s: a hidden command shows", args)
		}
	}
}

// TestHelpIsShort: what asynclock prints without arguments fits a terminal, and names the pages with the rest.
func TestHelpIsShort(t *testing.T) {
	t.Parallel()
	got := run(t)
	if lines := strings.Count(got.stdout, "\n"); lines > 50 || strings.Contains(got.stdout, "Exit codes:") {
		t.Errorf("got %d lines, want 50 at most, without the exit codes: %s", lines, got.stdout)
	}
	for topic, want := range map[string]string{"server": "rediss:// for TLS", "exit-codes": "79  run: the lease was lost while the command ran"} {
		if !strings.Contains(got.stdout, "asynclock "+topic) {
			t.Errorf("got %s, want it to name the topic %q", got.stdout, topic)
		}
		if page := run(t, "help", topic); !strings.Contains(page.stdout, want) {
			t.Errorf("help %s: got %q, want %q", topic, page.stdout, want)
		}
	}
}

// TestLockIsRun: hands that know etcdctl type it. A slip of theirs suggests no command that takes keys by force.
func TestLockIsRun(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.run(t, "lock", "k", "--", program(t), "exit", "7").want(t, 7)
	got := run(t, "block", "k")
	got.want(t, 64, `unknown command "block"`)
	if strings.Contains(got.stderr, "unlock") {
		t.Errorf("got %q, want it not to suggest unlock", got.stderr)
	}
}

// TestHelpHasExamples: each command about keys shows how it is called.
func TestHelpHasExamples(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"run", "hold", "elect", "ls", "inspect", "wait", "watch", "note", "runs", "unlock", "permits", "why"} {
		got := run(t, command, "--help")
		_, examples, _ := strings.Cut(got.stdout, "Examples:\n")
		if !strings.Contains(examples, "\n  asynclock "+command+" ") {
			t.Errorf("asynclock %s --help: got %q, want an example", command, got.stdout)
		}
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	if got := redis.run(t, "completion", "powershell"); got.code != 0 || !strings.Contains(got.stdout, "asynclock") {
		t.Errorf("got code %d and %d bytes, want a script", got.code, len(got.stdout))
	}
	redis.hold(t, "orders/1", "orders/2", "report")
	for _, command := range []string{"inspect", "unlock", "hold", "wait", "watch", "note", "why"} {
		got := run(t, "__complete", command, "--redis", redis.url, "orders/")
		if want := "orders/1\norders/2\n:4\n"; got.stdout != want {
			t.Errorf("%s: got completions %q, want %q", command, got.stdout, want)
		}
	}
	for _, command := range []string{"run", "elect"} {
		for args, want := range map[string]string{"orders/": "orders/1\norders/2\n:4\n", "k -- /us": ":0\n"} {
			all := append([]string{"__complete", command, "--redis", redis.url}, strings.Fields(args)...)
			if got := run(t, all...); got.stdout != want {
				t.Errorf("%s %s: got completions %q, want %q", command, args, got.stdout, want)
			}
		}
	}
	lease := redis.hold(t, "k")[0]
	for key, want := range map[string]string{"k": fmt.Sprintf("%d\ta test\n:4\n", lease.Token()), "free": ":4\n"} {
		if got := run(t, "__complete", "unlock", "--redis", redis.url, key, "--token", ""); got.stdout != want {
			t.Errorf("the token of %s: got completions %q, want %q", key, got.stdout, want)
		}
	}
}

func TestServerUnreachable(t *testing.T) {
	t.Parallel()
	nowhere := place{"redis://127.0.0.1:1"} // a port that the system gives to no test's server
	for _, args := range []string{
		"ls", "inspect k", "unlock --force --token 0 k", "run k --wait 1s -- true", "wait k --timeout 0", "watch", "note k",
	} {
		nowhere.run(t, strings.Fields(args)...).want(t, 69, "store unreachable", "connection refused")
	}
}

// TestServerSilent: a server that accepts and never answers must not hang us.
func TestServerSilent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // the kernel accepts, and nobody reads
	nowhere := place{"redis://" + listener.Addr().String()}
	nowhere.run(t, "inspect", "k").want(t, 69, "asynclock: ")
}

// TestServerHangs: one that lets us in and then hangs is unreachable; it is not
// held by another, and not a wait that is over.
func TestServerHangs(t *testing.T) {
	t.Parallel()
	mini := startRedis(t)
	over := make(chan struct{})
	defer close(over)
	mini.Server().SetPreHook(func(c *server.Peer, command string, _ ...string) bool {
		if strings.HasPrefix(command, "EVAL") {
			<-over
		}
		return standalone(c, command)
	})
	var running []<-chan result
	for _, args := range []string{
		"run k --wait 0 --ttl 500ms -- true", "run k --ttl 500ms -- true", "run k --wait 1m --ttl 500ms -- true",
		"inspect k", "unlock --force --token 0 k", "wait k --timeout 0", "note k",
	} {
		running = append(running, mini.background(t.Context(), strings.Fields(args)...))
	}
	for _, r := range running {
		finished(t, r).want(t, 69, "asynclock: ")
	}
}

// TestPasswordsStaySecret: whatever is wrong with a URL, its password is in no
// message.
func TestPasswordsStaySecret(t *testing.T) {
	t.Parallel()
	const password = "hunter2"
	server := startRedis(t)
	server.RequireUserAuth("user", "another")
	for url, code := range map[string]int{
		"redis://user:" + password + "@" + server.Addr():   77,
		"redis://user:" + password + "@127.0.0.1:1":        69,
		"redis://user:" + password + "@host:port":          64,
		"redis://user:" + password + "/x@host":             64,
		"redis://user:1/" + password + "@host":             64,
		"redis://user:" + password + "%zz@host":            64,
		"redis://user:" + password + "@host/" + password:   64,
		"http://user:" + password + "@host":                64,
		"user:" + password + "@host":                       64,
		"redis://host?db=" + password:                      64,
		"redis://host?dial_timeout=" + password:            64,
		"redis://host:1 " + password:                       64,
		"redis://" + password + "@" + server.Addr() + "/0": 77,
		// Of a password with a character that wanted to be encoded, a URL's parser takes
		// what is before it for a host and a port, or for a database.
		"redis://:1#" + password + "@127.0.0.1:6379":          64,
		"redis://" + password + ":1?x@127.0.0.1:6379":         64,
		"redis://" + password + ":1/0?x@127.0.0.1:6379":       64,
		"redis://" + password + ":1#":                         64,
		"unix:///" + password + "?x@/run/redis.sock":          64,
		"redis:" + password + "@127.0.0.1:6379":               64,
		"redis://127.0.0.1:1?addr=user:" + password + "@host": 64,
	} {
		for _, args := range [][]string{{"ls"}, {"-v", "run", "k", "--", "true"}} {
			got := run(t, append([]string{"--redis", url}, args...)...)
			got.want(t, code, "asynclock: ")
			if strings.Contains(got.stdout+got.stderr, password) {
				t.Errorf("%s: the password shows: %s", url, got.stderr)
			}
		}
	}
}

// TestForeignData: a value that is not ours is reported and left alone.
func TestForeignData(t *testing.T) {
	t.Parallel()
	server := startRedis(t)
	server.hold(t, "k")
	keys := server.Keys()
	for _, key := range keys {
		if strings.HasSuffix(key, ":l") {
			if err := server.Set(key, "not a lock"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, args := range []string{
		"inspect k", "unlock --force --token 0 k", "run k --wait 0 -- true", "run k -- true", "wait k", "note k", "note k --follow",
	} {
		server.run(t, strings.Fields(args)...).want(t, 65, "foreign data")
	}
}
