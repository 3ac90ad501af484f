// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclockui"
	"github.com/asynclock/asynclock-go/internal/proc"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// patience is how long an answer may take that takes no time.
const patience = time.Minute

// A stage is a Redis, five services that use it, and all that shows them.
type stage struct {
	*testing.T
	redis    *servers.Redis
	store    store.Store       // of the operator
	locks    *asynclock.Client // of the operator
	page     http.Handler
	log      kit.Journal // of the page
	program  string      // the command asynclock
	top      *screen
	services map[string]*process
}

// everyone is all services.
var everyone = []string{"orders", "billing", "shipping", "mail", "jobs"}

// onStage has the services work, and the operator look.
func onStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{T: t, redis: redistest.Start(t, servers.Config{}), services: make(map[string]*process)}
	s.program = filepath.Join(t.TempDir(), "asynclock")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.program, ".")
	build.Dir = filepath.Join(kit.Root(t), "cmd", "asynclock")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the command can't be built: %v\n%s", err, text)
	}
	s.openPage()
	s.startTop()
	for _, name := range everyone {
		s.services[name] = s.start(name)
	}
	return s
}

// openPage makes the operator's client, and its page.
func (s *stage) openPage() {
	s.Helper()
	st, err := redisstore.OpenURL(s.redis.URL())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(st.Close)
	s.store = st
	if s.locks, err = asynclock.New(st, asynclock.WithoutLogger()); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { closeNow(s.locks) })
	s.page, err = asynclockui.Handler(s.locks, asynclockui.Everybody, asynclockui.WithForceUnlock(),
		asynclockui.WithJobs(jobKey), asynclockui.WithLogger(s.log.Logger(slog.LevelInfo)))
	if err != nil {
		s.Fatal(err)
	}
}

// A process is a service in a process of its own.
type process struct {
	*proc.Process
	t    *testing.T
	name string
	in   *os.File
	out  *os.File
	read *bufio.Reader
}

// start starts a service, which ends with the test.
func (s *stage) start(name string) *process {
	s.Helper()
	self, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	input, in := s.pipe()
	out, output := s.pipe()
	said := new(kit.Journal)
	cmd := exec.Command(self)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, output, said
	cmd.Env = append(os.Environ(), serviceVariable+"="+name, serverVariable+"="+s.redis.URL(), "GORACE=atexit_sleep_ms=0")
	p := &process{t: s.T, name: name, in: in, out: out, read: bufio.NewReader(out)}
	if p.Process, err = proc.Start(cmd); err != nil {
		s.Fatal(err)
	}
	_, _ = input.Close(), output.Close() // the process has its own
	s.Cleanup(func() {
		_ = p.Kill()
		if s.Failed() {
			s.Logf("%s said:\n%s", name, said)
		}
	})
	return p
}

// pipe returns both ends of one, which the test's end closes.
func (s *stage) pipe() (read, write *os.File) {
	s.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _, _ = read.Close(), write.Close() })
	return read, write
}

// tell tells a service what to do, and reads its answer into one, unless that is nil.
func (p *process) tell(answer any, words ...string) {
	p.t.Helper()
	if err := p.out.SetReadDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.WriteString(strings.Join(words, " ") + "\n"); err != nil {
		p.t.Fatalf("%s, %q: %v", p.name, words, err)
	}
	line, err := p.read.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("%s, %q: got no answer: %v", p.name, words, err)
	}
	if answer == nil {
		return
	}
	if err := json.Unmarshal(line, answer); err != nil {
		p.t.Fatalf("%s, %q: got %q: %v", p.name, words, line, err)
	}
}

// do has a service do something.
func (s *stage) do(name string, words ...string) {
	s.Helper()
	s.services[name].tell(nil, words...)
}

// A reported is a report of a service that a test looks at.
type reported struct {
	report
	*testing.T
	name string
}

// report is that of a service.
func (s *stage) report(name string) reported {
	s.Helper()
	r := reported{T: s.T, name: name}
	s.services[name].tell(&r.report, "report")
	return r
}

// holds waits until a service holds the key, and returns the token.
func (s *stage) holds(name, key string) (token int64) {
	s.Helper()
	kit.Eventually(s, name+" holds "+key, func() bool {
		h := s.report(name).Held[key]
		token = h.Token
		return token > 0 && h.Ended == ""
	})
	return token
}

// waits waits until as many clients wait for the key.
func (s *stage) waits(key string, want int) {
	s.Helper()
	kit.Eventually(s, "clients wait for "+key, func() bool {
		info, err := s.locks.Inspect(s.Context(), key)
		return err == nil && info.Waiters == want
	})
}

// wantSeries fails the test unless each series has its value.
func (r *reported) wantSeries(want map[string]float64) {
	r.Helper()
	for name, want := range want {
		if got, known := r.Series[name]; got != want || !known {
			r.Errorf("%s: %s: got %v, known %v, want %v", r.name, name, got, known, want)
		}
	}
}

// wantSpan fails the test unless exactly one such span has ended.
func (r *reported) wantSpan(want string) {
	r.Helper()
	n := 0
	for _, span := range r.Spans {
		if span == want {
			n++
		}
	}
	if n != 1 {
		r.Errorf("%s: got %d such spans, want 1 %q among\n%s", r.name, n, want, strings.Join(r.Spans, "\n"))
	}
}

// longest is the largest value of the histograms whose names and attributes have all these texts.
func (r *reported) longest(texts ...string) (value float64) {
	for name, v := range r.Longest {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(name, text) }) {
			value = max(value, v)
		}
	}
	return value
}
