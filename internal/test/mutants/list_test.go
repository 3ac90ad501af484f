// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

const root = "../../.."

const example = `# a comment

mutant: the sky stays up
test: sky TestSky/falls
file: sky/sky.go
 func up() bool {
-	return true
+	return false
file: sky/cloud.lua
-local height = 1

# another
mutant: water is wet
test: .
file: water.go
+	panic("dry")
 	return wet

`

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := parse("x.txt", example)
	want := []mutant{
		{
			name: "the sky stays up", pkg: "sky", test: "TestSky/falls",
			edits: []edit{
				{"sky/sky.go", "func up() bool {\n\treturn true\n", "func up() bool {\n\treturn false\n"},
				{"sky/cloud.lua", "local height = 1\n", ""},
			},
		},
		{
			name: "water is wet", pkg: ".",
			edits: []edit{{"water.go", "\treturn wet\n", "\tpanic(\"dry\")\n\treturn wet\n"}},
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	const good = "mutant: a\ntest: p TestA\nfile: f.go\n-x\n+y\n\n"
	for _, c := range []struct{ name, old, new, want string }{
		{"no end", "+y\n\n", "+y", "empty line"},
		{"no name", "mutant: a\n", "", "without a name"},
		{"no test", "test: p TestA\n", "", "names no test"},
		{"no edit", "file: f.go\n-x\n+y\n", "", "changes nothing"},
		{"the same text", "+y", "+x", "changes nothing"},
		{"no old text", "-x\n", "", "changes nothing"},
		{"lines without a file", "file: f.go\n", "", "before its file"},
		{"a file elsewhere", "f.go", "../f.go", "not a file"},
		{"an absolute file", "f.go", "/f.go", "not a file"},
		{"a test broken", "f.go", "f_test.go", "breaks a test"},
		{"a flag for a test", "p TestA", "p -exec=x", "not a package and a test"},
		{"a flag for a package", "p TestA", "-exec TestA", "not a package and a test"},
		{"an unknown line", "test:", "tests:", "unknown line"},
	} {
		if _, err := parse("x.txt", strings.Replace(good, c.old, c.new, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want it to say %q", c.name, err, c.want)
		}
	}
	twice := fstest.MapFS{"a/testdata/mutants.txt": {Data: []byte(good)}, "b/testdata/mutants.txt": {Data: []byte(good)}}
	if _, err := parseAll(twice); err == nil || !strings.Contains(err.Error(), "two mutants") {
		t.Errorf("one name twice: got %v, want it to say so", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parse("x.txt", text)
		if err != nil {
			return
		}
		for _, m := range all {
			if err := m.complete(); err != nil {
				t.Errorf("accepted: %v", err)
			}
		}
	})
}

// The lists in the repository, without running a single mutant.
func TestNoMutantIsRotten(t *testing.T) {
	t.Parallel()
	all, err := parseAll(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Errorf("got %d mutants, want at least 100", len(all))
	}
	tests := make(map[string]string)
	for _, m := range all {
		if _, err := m.broken(root); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if tests[m.pkg] == "" {
			tests[m.pkg] = testsOf(t, m.pkg)
		}
		if name, _, _ := strings.Cut(m.test, "/"); name == "" || !strings.Contains(tests[m.pkg], "\nfunc "+name+"(") {
			t.Errorf("%s: there is no test %q in %s", m.name, m.test, m.pkg)
		}
	}
}

// testsOf returns all test files of a package, one after the other.
func testsOf(t *testing.T, pkg string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

func TestChoose(t *testing.T) {
	t.Parallel()
	var all []mutant
	for _, name := range []string{"a1", "b1", "a2", "b2", "a3"} {
		all = append(all, mutant{name: name, edits: []edit{{file: "dir/" + name + ".go"}}})
	}
	for _, c := range []struct {
		pattern      string
		first, parts int
		most         int
		want         string
	}{
		{"", 0, 1, 0, "a1 b1 a2 b2 a3"},
		{"^a", 0, 1, 0, "a1 a2 a3"},
		{`/b\d\.go$`, 0, 1, 0, "b1 b2"},
		{"", 0, 2, 0, "a1 a2 a3"},
		{"", 1, 2, 0, "b1 b2"},
		{"^a", 1, 2, 0, "a2"},
		{"", 0, 1, 2, "a1 a2"},
		{"", 0, 1, 5, "a1 b1 a2 b2 a3"},
		{"", 0, 1, 9, "a1 b1 a2 b2 a3"},
		{"c", 0, 1, 0, ""},
	} {
		var got []string
		for _, m := range thin(share(choose(all, regexp.MustCompile(c.pattern)), c.first, c.parts), c.most) {
			got = append(got, m.name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-shard", "0/4"}, {"-shard", "5/4"}, {"-shard", "2"}, {"-shard", "1/4x"}, {"-most", "-1"}, {"-tries", "0"}, {"more"}} {
		if ok, err := run(t.Context(), append(args, "-list"), io.Discard); ok || err == nil {
			t.Errorf("%q: got %v, %v; want an error", args, ok, err)
		}
	}
}
