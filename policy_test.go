// SPDX-License-Identifier: Apache-2.0

package asynclockgo_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What every file and package here has to keep to, so that no reviewer has to
// remember it.

const modulePath = "github.com/asynclock/asynclock-go"

const (
	maxFileLines     = 400
	maxTestFileLines = 600
)

// everything marks a package that is free to import what it likes.
const everything = "*"

// mayImport says what the files of a package, without its tests, import beside
// the standard library. Dependencies point one way: programs to stores, stores
// to asynclock and pubsub, asynclock to watchdog. A new package needs a line.
var mayImport = map[string][]string{
	".":                 {},
	"asynclock":         {"github.com/google/uuid", "internal/batch", "internal/clock", "internal/notes", "watchdog"},
	"watchdog":          {"internal/clock"},
	"pubsub":            {},
	"store/redisstore":  {"asynclock", "internal/notes", "internal/redisconn", "pubsub", "github.com/redis/rueidis"},
	"store/springredis": {"asynclock", "internal/notes", "internal/redisconn", "pubsub", "github.com/google/uuid", "github.com/redis/rueidis"},
	"store/sqlstore": {
		"asynclock", "internal/notes", "pubsub", "github.com/go-sql-driver/mysql", "github.com/google/uuid",
		"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgconn", "github.com/jackc/pgx/v5/pgxpool", "github.com/jackc/pgx/v5/stdlib",
		"github.com/jackc/puddle/v2",
	},
	"store/zkstore":   {"asynclock", "internal/clock", "internal/notes", "internal/withdrawn", "watchdog", "github.com/go-zookeeper/zk", "github.com/google/uuid"},
	"store/memstore":  {"asynclock", "internal/withdrawn"},
	"store/storetest": {"asynclock"}, // others depend on it: nothing that they would have to download

	"internal/batch":     {},
	"internal/clock":     {"golang.org/x/sys/unix"},
	"internal/childproc": {},
	"internal/fuzzreply": {"github.com/redis/rueidis"},
	"internal/cli":       {everything},
	"internal/demo":      {everything},
	"asynclocktest":      {"asynclock", "store/memstore"},
	"internal/javapeer":  {"internal/childproc"}, // and only tests import it
	"internal/mutants":   {},
	"internal/needed":    {}, // only tests import it, and testenv
	"internal/notes":     {"internal/batch"},
	"internal/redisconn": {"asynclock", "github.com/redis/rueidis"},
	"internal/dbserver":  {"internal/childproc"},
	"internal/redistest": {everything}, // and only tests import it
	"internal/certtest":  {},           // likewise
	"internal/timerleak": {},
	"internal/testenv":   {"internal/dbserver", "internal/needed", "internal/zkserver", "github.com/go-sql-driver/mysql", "github.com/jackc/pgx/v5/stdlib", "github.com/redis/rueidis"},
	"internal/withdrawn": {},
	"internal/zkserver":  {"internal/childproc"},
	"internal/zktest":    {"internal/needed", "github.com/go-zookeeper/zk"}, // only tests import it

	"interop/spring":           {},
	"interop/zookeeper":        {},
	"internal/nemesis":         {everything},
	"internal/nemesis/check":   {"internal/nemesis/history"},
	"internal/nemesis/history": {"golang.org/x/sys/unix"},
	"internal/notes/notestest": {}, // only tests import it

	"cmd/asynclock": {everything},
	"bench":         {everything}, // a module of its own
}

// forTests must not reach a user's program; the packages named may use it.
var forTests = map[string][]string{
	"testing":                           {"store/storetest", "internal/javapeer", "internal/needed", "internal/redistest", "internal/certtest", "internal/notes/notestest", "internal/zktest"},
	"net/http/httptest":                 {},
	"go.uber.org/goleak":                {"internal/nemesis", "internal/redistest"}, // workers look for what they leave behind
	"github.com/anishathalye/porcupine": {"internal/nemesis/check"},
	"pgregory.net/rapid":                {},
	"github.com/alicebob/miniredis/v2":  {"internal/cli", "internal/demo", "internal/redistest"}, // the demo runs on it
}

// A goFile is one source file of the repository.
type goFile struct {
	name   string // relative to the root, with slashes
	pkg    string // its directory
	source []byte
	syntax *ast.File
}

func (f goFile) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// imports returns what a file imports beside the standard library:
// packages of this module without the module's path, and whatever is for tests.
func (f goFile) imports(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, spec := range f.syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		local, ours := strings.CutPrefix(p, modulePath+"/")
		_, isForTests := forTests[p]
		first, _, _ := strings.Cut(p, "/")
		if ours || isForTests || strings.Contains(first, ".") { // the standard library's have no dot
			paths = append(paths, local)
		}
	}
	return paths
}

// goFiles returns every Go file of the repository, those of nested modules too.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (entry.Name()[0] == '.' || entry.Name() == "testdata"):
			return fs.SkipDir // as the go command does
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
		if err != nil {
			return err
		}
		files = append(files, goFile{name, path.Dir(name), source, syntax})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestEveryFileNamesItsLicense(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if !bytes.HasPrefix(f.source, []byte("// SPDX-License-Identifier: Apache-2.0\n")) {
			t.Errorf("%s: the first line is not // SPDX-License-Identifier: Apache-2.0", f.name)
		}
	}
}

func TestNoFileIsLong(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		limit := maxFileLines
		if f.isTest() {
			limit = maxTestFileLines
		}
		if got := bytes.Count(f.source, []byte("\n")); got > limit {
			t.Errorf("%s: %d lines, want at most %d", f.name, got, limit)
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	t.Parallel()
	comments := make(map[string][]string)
	for _, f := range goFiles(t) {
		if f.isTest() {
			continue
		}
		files := comments[f.pkg]
		if f.syntax.Doc.Text() != "" {
			files = append(files, f.name)
		}
		comments[f.pkg] = files
	}
	for pkg, files := range comments {
		if len(files) != 1 {
			t.Errorf("package %s: %d package comments %q, want 1", pkg, len(files), files)
		}
	}
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	used := make(map[string][]string)
	for _, f := range goFiles(t) {
		if f.isTest() {
			continue
		}
		used[f.pkg] = append(used[f.pkg], f.imports(t)...)
		allowed, known := mayImport[f.pkg]
		if !known {
			t.Errorf("%s: package %s has no line in mayImport", f.name, f.pkg)
			continue
		}
		for _, p := range f.imports(t) {
			users, isForTests := forTests[p]
			switch {
			case isForTests:
				if !slices.Contains(users, f.pkg) {
					t.Errorf("%s imports %s, which is for tests", f.name, p)
				}
			case !slices.Contains(allowed, p) && !slices.Contains(allowed, everything):
				t.Errorf("%s imports %s; package %s may import %q", f.name, p, f.pkg, allowed)
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(mayImport)) {
		if _, exists := used[pkg]; !exists {
			t.Errorf("mayImport has a line for %s, which has no files", pkg)
		}
		for _, p := range mayImport[pkg] {
			if p != everything && !slices.Contains(used[pkg], p) {
				t.Errorf("mayImport allows %s to import %s, which it does not", pkg, p)
			}
		}
	}
}
