// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

var update = flag.Bool("update", false, "write what the programs print to their output.txt")

// limit bounds a program, which takes a second or two on an idle machine.
const limit = 2 * time.Minute

// A program is a folder with a command.
type program struct {
	name     string
	noRedis  bool     // it has no flag -redis
	postgres bool     // it has a flag -postgres
	again    []string // flags with which it can run twice on one Redis
}

var programs = []program{
	{name: "async-chain"},
	{name: "cron-once", again: []string{"-job", "report-" + rand.Text()}},
	{name: "http-invoice", postgres: true},
	{name: "leader"},
	{name: "migrate-on-start"},
	{name: "otel"},
	{name: "s3-fence"},
	{name: "stampede"},
	{name: "test-your-code"},
	{name: "worker-pool"},
}

// bin is where the programs are, once they are built.
var bin string

var (
	building sync.Mutex // one at a time: linking takes memory
	built    = make(map[string]error)
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "examples")
	if err != nil {
		panic(err)
	}
	bin = dir + string(filepath.Separator)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// build builds the program for all tests that need it. If this test has the race detector, so has the program. By
// then the packages that it imports are compiled.
func (p program) build() error {
	building.Lock()
	defer building.Unlock()
	err, done := built[p.name]
	if done {
		return err
	}
	args := []string{"build", "-o", bin}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	if overlay := os.Getenv("ASYNCLOCK_OVERLAY"); overlay != "" { // of a mutant
		args = append(args, "-overlay="+overlay)
	}
	said, err := exec.Command("go", append(args, "./"+p.name)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: [build failed] %w\n%s", p.name, err, said)
	}
	built[p.name] = err
	return err
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.want(t, p.run(t))
		})
	}
}

func TestProgramsOnRedis(t *testing.T) {
	t.Parallel()
	redis := kit.Require(t, "ASYNCLOCK_REDIS_URL")
	for _, p := range programs {
		if p.noRedis {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.want(t, p.run(t, append([]string{"-redis", redis}, p.again...)...))
		})
	}
}

func TestProgramsOnPostgres(t *testing.T) {
	t.Parallel()
	postgres := kit.Require(t, "ASYNCLOCK_POSTGRES_URL")
	for _, p := range programs {
		if !p.postgres {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.want(t, p.run(t, "-postgres", newSchema(t, postgres)))
		})
	}
}

// run runs the program to its end, and returns what it prints.
func (p program) run(t *testing.T, flags ...string) string {
	t.Helper()
	if err := p.build(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin+p.name, flags...)
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s\n%s", p.name, strings.Join(flags, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

// want checks what the program has printed.
func (p program) want(t *testing.T, got string) {
	t.Helper()
	file := filepath.Join(p.name, "output.txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// newSchema makes a schema that ends with the test, and returns the URL that leads there.
func newSchema(t *testing.T, postgres string) string {
	t.Helper()
	db, err := sql.Open("pgx", postgres)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	name := "examples_" + strings.ToLower(rand.Text())
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.Background(), "DROP SCHEMA "+name+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(postgres)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// Each program is in the table of this test and in that of the page.
func TestEachProgramIsListed(t *testing.T) {
	t.Parallel()
	mains, err := filepath.Glob("*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	page := kit.ReadFile(t, "examples/README.md")
	for _, name := range mains {
		dir := filepath.Dir(name)
		if !slices.ContainsFunc(programs, func(p program) bool { return p.name == dir }) {
			t.Errorf("%s is not among the programs of this test", dir)
		}
		if !strings.Contains(page, "["+dir+"]("+dir+"/") {
			t.Errorf("%s is not on README.md", dir)
		}
	}
	if len(mains) != len(programs) {
		t.Errorf("got %d folders, want %d", len(mains), len(programs))
	}
}
