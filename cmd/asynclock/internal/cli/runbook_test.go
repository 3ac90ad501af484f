// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store/anystore"
)

var updatePage = flag.Bool("update-page", false, "write what the commands print into the pages")

// The pages whose scenes are played.
const (
	runbook     = "docs/operate.md"
	maintenance = "docs/maintenance.md"
)

// writing is held by a scene that changes the page.
var writing sync.Mutex

// A scene is an incident on a real server, and what an operator sees of it.
type scene struct {
	*testing.T
	place

	page  string
	seen  strings.Builder // the commands and what they printed
	names []string        // what is so only here, each followed by what the page has for it
}

// newScene begins a scene under a prefix of its own, where keys are granted.
func newScene(t *testing.T, url string) *scene {
	t.Helper()
	s := setScene(t, runbook, url+"?prefix=runbook-"+uuid.NewString())
	lease, err := s.service("test").Lock(t.Context(), "ready") // a server that has just been started grants nothing for a while
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// setScene begins a scene of a page.
func setScene(t *testing.T, page, url string) *scene {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return &scene{T: t, place: place{url}, page: page, names: []string{host, "app-1"}}
}

// service is a client of the server.
func (s *scene) service(description string) *asynclock.Client {
	s.Helper()
	store, err := anystore.Open(s.Context(), s.url, anystore.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		s.Fatal(err)
	}
	locks, err := asynclock.New(store, asynclock.WithOwnedStore(), asynclock.WithoutLogger(), asynclock.WithDescription(description))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = locks.Close(ended) // some hold their keys to the end
	})
	return locks
}

// waits lets a service wait for a key, and then hold it.
func (s *scene) waits(service, key string) {
	s.Helper()
	locks := s.service(service)
	go func() { _, _ = locks.Lock(s.Context(), key) }() // until the client is closed
}

// queue lets services wait for a key, in this order.
func (s *scene) queue(key string, services ...string) {
	s.Helper()
	for i, name := range services {
		s.waits(name, key)
		kit.Eventually(s.T, name+" waits", func() bool {
			info, err := s.service("test").Inspect(s.Context(), key)
			return err == nil && info.Waiters == i+1
		})
	}
}

// process starts this program as a process of its own, and returns what it says on stderr, too.
func (s *scene) process(args ...string) (*exec.Cmd, *buffer) {
	s.Helper()
	p, said := exec.Command(program(s.T), args...), new(buffer)
	p.Env, p.Stderr = s.env(), said
	if err := p.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p, said
}

// sees runs a command, and writes down what an operator types and sees.
func (s *scene) sees(args ...string) (stdout string) {
	s.Helper()
	got := s.run(s.T, args...)
	s.writes("$ asynclock "+strings.Join(args, " ")+"\n", got.stdout+got.stderr)
	return got.stdout
}

func (s *scene) writes(texts ...string) {
	names := strings.NewReplacer(s.names...)
	for _, text := range texts {
		s.seen.WriteString(names.Replace(text))
	}
}

// ends compares what was seen with the page, except for ids, figures and spaces.
func (s *scene) ends(name string) {
	s.Helper()
	writing.Lock()
	defer writing.Unlock()
	marker := "<!-- played: " + name + " -->\n```console\n"
	page := kit.ReadFile(s.T, s.page)
	before, rest, begun := strings.Cut(page, marker)
	shown, after, ended := strings.Cut(rest, "```\n")
	if !begun || !ended {
		s.Fatalf("%s has no place for %s", s.page, name)
	}
	if *updatePage {
		page = before + marker + s.seen.String() + "```\n" + after
		if err := os.WriteFile(filepath.Join(kit.Root(s.T), s.page), []byte(page), 0o600); err != nil {
			s.Fatal(err)
		}
		return
	}
	if got, want := withoutFigures(s.seen.String()), withoutFigures(shown); got != want {
		s.Errorf("%s: got\n%s\nwant, but for figures,\n%s\n'go test ./cmd/asynclock/internal/cli -run Runbook -update-page' writes it", name, s.seen.String(), shown)
	}
}

var (
	ids     = regexp.MustCompile(`\b[0-9a-f]{8}([0-9a-f]{32})?\b`) // of a history, or as the command shortens it
	figures = regexp.MustCompile(`[0-9]+([.:][0-9]+)*(µs|[a-zA-Z]{1,2}\b)?`)
	spaces  = regexp.MustCompile(` +`)
)

func withoutFigures(text string) string {
	return spaces.ReplaceAllString(figures.ReplaceAllString(ids.ReplaceAllString(text, "0"), "0"), " ")
}
