// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/cmd/asynclock/internal/cli"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/once"
)

// TestRunbook: the page shows what an operator sees in each incident.
func TestRunbook(t *testing.T) {
	t.Parallel()
	url := kit.Require(t, "ASYNCLOCK_REDIS_URL")
	for name, play := range map[string]func(*scene){
		"work that hangs": playHangingWork, "a holder that stands still": playPausedHolder, "a hot key": playHotKey,
		"a lost lease": playLostLease, "jobs": playJobs, "no leader": playNoLeader,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, url)
			play(s)
			s.ends(name)
		})
	}
	for name, play := range map[string]func(*scene, *servers.Redis){"a busy server": playBusyServer, "an upgrade": playUpgrade} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, servers.Config{})
			s := newScene(t, server.URL())
			play(s, server)
			s.ends(name)
		})
	}
}

// take takes a key for as long as the scene lasts.
func (s *scene) take(key, service string) *asynclock.Lease {
	s.Helper()
	lease, err := s.service(service).Lock(s.Context(), key)
	if err != nil {
		s.Fatal(err)
	}
	return lease
}

// hasHolder waits until this one has the key.
func (s *scene) hasHolder(key, holder string) {
	s.Helper()
	locks := s.service("test")
	kit.Eventually(s.T, holder+" has "+key, func() bool {
		info, err := locks.Inspect(s.Context(), key)
		return err == nil && info.Holder == holder
	})
}

func playHangingWork(s *scene) {
	lease := s.take("order:42", "billing on app-1, pid 4711")
	s.queue("order:42", "shipping on app-2, pid 815", "invoices on app-3, pid 4712")
	s.sees("why", "order:42")
	s.sees("unlock", "order:42", "--force", "--token", strconv.FormatInt(lease.Token(), 10))
	s.hasHolder("order:42", "shipping on app-2, pid 815")
	s.sees("inspect", "order:42")
}

func playPausedHolder(s *scene) {
	holder, _ := s.process("run", "order:42", "--holder", "billing on app-1, pid 4711", "--", program(s.T), "sleep", filepath.Join(s.TempDir(), "file"))
	s.hasHolder("order:42", "billing on app-1, pid 4711")
	s.queue("order:42", "shipping on app-2, pid 815")
	if err := holder.Process.Signal(syscall.SIGSTOP); err != nil {
		s.Fatal(err)
	}
	s.sees("why", "order:42")
	s.hasHolder("order:42", "shipping on app-2, pid 815")
	s.sees("why", "order:42")
}

func playHotKey(s *scene) {
	hot := s.take("stock:7", "shop on app-1, pid 4711")
	s.take("report", "reports on app-3, pid 4712")
	s.queue("stock:7", "shop on app-2, pid 815", "shop on app-3, pid 99", "shop on app-4, pid 7")
	s.queue("report", "reports on app-1, pid 4713")
	screen := cli.TopScreen(s.Context(), s.service("test"), func() {
		if err := hot.Unlock(s.Context()); err != nil {
			s.Error(err)
		}
		s.hasHolder("stock:7", "shop on app-2, pid 815")
	})
	s.writes("$ asynclock top\n", screen)
}

func playLostLease(s *scene) {
	server, _, _ := strings.Cut(s.url, "?")
	const tries = 5
	for range tries {
		if try := newScene(s.T, server); try.losesLease() {
			s.writes(try.seen.String())
			return
		}
	}
	s.Errorf("watch began late, or saw the key free between two holders, %d times in a row", tries)
}

// losesLease reports whether watch saw the key taken, and no moment between one holder and the next, as it usually does.
func (s *scene) losesLease() bool {
	var lines buffer
	ctx, stop := context.WithCancel(s.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		cli.Run(ctx, []string{"--store", s.url, "watch", "order:"}, strings.NewReader(""), &lines, &lines)
	}()
	holder, said := s.process("run", "order:42", "--ttl", "3s", "--holder", "billing on app-1, pid 4711", "--", program(s.T), "sleep", filepath.Join(s.TempDir(), "file"))
	s.hasHolder("order:42", "billing on app-1, pid 4711")
	late := false // watch began when the key was taken already
	kit.Eventually(s.T, "the holder is seen", func() bool {
		late = strings.Contains(lines.String(), "found")
		return late || strings.Contains(lines.String(), "taken")
	})
	if late {
		stop()
		<-watched
		return false
	}
	s.queue("order:42", "shipping on app-2, pid 815")
	kit.Eventually(s.T, "the waiter is seen", func() bool { return strings.Contains(lines.String(), "waiting") })
	if err := holder.Process.Signal(syscall.SIGSTOP); err != nil {
		s.Fatal(err)
	}
	var between bool
	kit.Eventually(s.T, "the next holder is seen", func() bool {
		between = strings.Contains(lines.String(), "freed")
		return between || strings.Contains(lines.String(), "passed")
	})
	if err := holder.Process.Signal(syscall.SIGCONT); err != nil {
		s.Fatal(err)
	}
	_ = holder.Wait()
	stop()
	<-watched
	s.writes("$ asynclock watch order:\n", lines.String())
	s.writes("$ tail -2 billing.log\n", said.String())
	return !between
}

func playJobs(s *scene) {
	locks := s.service("reports on app-1, pid 4711")
	_, err := once.Do(s.Context(), locks, "report", 24*time.Hour, func(context.Context, once.Run) error { return errors.New("disk full") })
	if err == nil {
		s.Error("got no error of the job")
	}
	file := filepath.Join(s.TempDir(), "file")
	dies, _ := s.process("job", "billing", file)
	exists(s.T, file)
	if err := dies.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	s.hasHolder("billing", "")
	s.sees("runs", "report")
	s.sees("runs", "billing")
	s.sees("runs", "cleanup")
}

func playNoLeader(s *scene) {
	leader, _ := s.process("elect", "scheduler", "--value", "10.0.0.7:8080", "--ttl", "3s", "--holder", "scheduler on app-1, pid 4711", "--",
		program(s.T), "sleep", filepath.Join(s.TempDir(), "file"))
	s.hasHolder("scheduler", "scheduler on app-1, pid 4711")
	s.sees("note", "scheduler")
	if err := leader.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	s.hasHolder("scheduler", "")
	s.sees("note", "scheduler")
	s.sees("why", "scheduler")
}

// playBusyServer: somebody else's scripts keep the server from us.
func playBusyServer(s *scene, server *servers.Redis) {
	const script = `local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end
local begin = now()
while now() - begin < 40 do end`
	ctx, stop := context.WithCancel(s.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_ = server.Do(ctx, "EVAL", script, "0")
		}
	}()
	s.seesOnly("answers", "doctor", "--ttl", "1s")
	stop()
	<-ended
}

func playUpgrade(s *scene, server *servers.Redis) {
	s.seesOnly("replication", "doctor")
	s.seesOnly("persistence", "doctor")
	server.Kill()
	if err := server.Restart(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.sees("why", "order:42")
	s.sees("run", "order:42", "--", "true")
	s.sees("why", "order:42")
}

// seesOnly is sees, of the lines about one thing.
func (s *scene) seesOnly(check string, args ...string) {
	s.Helper()
	got := s.run(s.T, args...)
	s.writes("$ asynclock " + strings.Join(args, " ") + " | grep -A1 " + check + "\n")
	inside := false
	for line := range strings.Lines(got.stdout) {
		if inside = strings.Contains(line, " "+check+" ") || inside && strings.HasPrefix(line, "      "); inside {
			s.writes(line)
		}
	}
}
