// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	const fails = "--- FAIL: TestA (0.00s)\n    a_test.go:1: got 1, want 2\nFAIL\nFAIL\tp\t0.1s\n"
	for _, c := range []struct {
		name, test, output string
		passed             bool
		want               verdict
		remark             string
	}{
		{"the test fails", "TestA", fails, false, killed, ""},
		{"the test passes", "TestA", "ok  \tp\t0.1s\n", true, survived, ""},
		{"another test fails", "TestB", fails, false, survived, "something else failed"},
		{"a test whose name begins alike fails", "Test", fails, false, survived, "something else failed"},
		{"its subtest fails", "TestA/x", "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/x (0.00s)\n", false, killed, ""},
		{"another subtest fails", "TestA/x", "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/y (0.00s)\n", false, survived, ""},
		{"the test panics", "TestA", "--- FAIL: TestA (0.00s)\npanic: x [recovered]\n", false, killed, ""},
		{"a goroutine panics", "TestA", "panic: x\n\ngoroutine 7 [running]:\n", false, killed, "panic"},
		{"the runtime gives up", "TestA", "fatal error: all goroutines are asleep - deadlock!\n", false, killed, "panic"},
		{"it takes too long", "TestA", "panic: test timed out after 1m0s\n\trunning tests:\n\t\tTestA (1m0s)\n", false, killed, "time"},
		{"goroutines are left over", "TestA", "PASS\ngoleak: Errors on successful test run\nexit status 1\n", false, survived, "something else failed"},
		{"it does not compile", "TestA", "# p\n./a.go:1:1: undefined: x\nFAIL\tp [build failed]\n", false, rotten, "undefined: x"},
		{"a package is missing", "TestA", "# p\na.go:3:8: no required module\nFAIL\tp [setup failed]\n", false, rotten, "compile"},
		{"no test is named, some fail", "", fails, false, rotten, "TestA"},
		{"no test is named, none fails", "", "ok  \tp\t0.1s\n", true, rotten, "no test of p fails"},
	} {
		got := judge(mutant{pkg: "p", test: c.test}, c.output, c.passed)
		if got.verdict != c.want || !strings.Contains(got.remark, c.remark) {
			t.Errorf("%s: got %v %q, want %v %q", c.name, got.verdict, got.remark, c.want, c.remark)
		}
	}
}

func TestExcuse(t *testing.T) {
	t.Parallel()
	of := outcomes("=== RUN   TestA\n    --- PASS: TestA/x (0.00s)\n--- PASS: TestA (0.00s)\n--- SKIP: TestB (0.00s)\n--- FAIL: TestC (0.00s)\n" +
		"        --- SKIP: TestE/x/y (0.00s)\n    --- PASS: TestE/x (0.00s)\n    --- SKIP: TestE/z (0.00s)\n--- PASS: TestE (0.00s)\n" +
		"    --- SKIP: TestF/x (0.00s)\n    --- PASS: TestF/y (0.00s)\n--- PASS: TestF (0.00s)\n")
	for test, want := range map[string]verdict{"TestB": skipped, "TestB/x/y": skipped, "TestE": skipped, "TestE/x": skipped, "TestE/z": skipped, "TestC": rotten, "TestD": rotten, "TestA/y": rotten} {
		if got, has := (mutant{pkg: "p", test: test}).excuse(of); !has || got.verdict != want || got.remark == "" {
			t.Errorf("%s: got %v %q, want %v and why", test, got.verdict, got.remark, want)
		}
	}
	for _, test := range []string{"TestA", "TestA/x", "TestF", "TestF/y"} {
		if got, has := (mutant{pkg: "p", test: test}).excuse(of); has {
			t.Errorf("%s: got %v %q, want no excuse", test, got.verdict, got.remark)
		}
	}
}

func TestBroken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("one\ntwo\nthree\n\ttwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		edits []edit
		want  string // the file, or part of the error
	}{
		{"a line", []edit{{"a.go", "two\n", "2\n"}}, "one\n2\nthree\n\ttwo\n"},
		{"the first", []edit{{"a.go", "one\n", ""}}, "two\nthree\n\ttwo\n"},
		{"the last", []edit{{"a.go", "\ttwo\n", "2\n"}}, "one\ntwo\nthree\n2\n"},
		{"two edits of a file", []edit{{"a.go", "one\n", "1\n"}, {"a.go", "three\n", "3\n"}}, "1\ntwo\n3\n\ttwo\n"},
		{"part of a line", []edit{{"a.go", "wo\n", "2\n"}}, "0 times"},
		{"not there", []edit{{"a.go", "four\n", "4\n"}}, "0 times"},
		{"there twice", []edit{{"a.go", "one\n", "two\n"}, {"a.go", "two\n", "2\n"}}, "2 times"},
		{"no file", []edit{{"b.go", "one\n", "1\n"}}, "b.go"},
	} {
		got, err := mutant{edits: c.edits}.broken(dir)
		if err != nil {
			got = map[string]string{"a.go": err.Error()}
		}
		if text := got["a.go"]; text != c.want && (err == nil || !strings.Contains(text, c.want)) {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
}

// A module of its own, with Go and an embedded file, goes the whole way.
func TestTryAll(t *testing.T) {
	t.Parallel()
	module := map[string]string{
		"go.mod":    "module sky\n\ngo 1.25\n",
		"sky.go":    "package sky\n\nimport _ \"embed\"\n\n//go:embed color.txt\nvar color string\n\nfunc height() int {\n\treturn 3\n}\n",
		"color.txt": "blue\n",
		"sky_test.go": "package sky\n\nimport \"testing\"\n\nfunc TestColor(t *testing.T) {\n\tif color != \"blue\\n\" {\n\t\tt.Fatal(color)\n\t}\n}\n\n" +
			"func TestHeight(t *testing.T) {\n\tif height() < 3 {\n\t\tt.Fatal(height())\n\t}\n}\n\nfunc TestSkipped(t *testing.T) { t.Skip() }\n",
	}
	dir := t.TempDir()
	for name, text := range module {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	height := func(instead string) []edit { return []edit{{"sky.go", "\treturn 3\n", instead}} }
	color := []edit{{"color.txt", "blue\n", "red\n"}}
	all := []mutant{
		{name: "killed", pkg: ".", test: "TestHeight", edits: height("\treturn 2\n")},
		{name: "embedded", pkg: ".", test: "TestColor", edits: color},
		{name: "survivor", pkg: ".", test: "TestHeight", edits: height("\treturn 4\n")},
		{name: "uncompiled", pkg: ".", test: "TestHeight", edits: height("\treturn \"\"\n")},
		{name: "elsewhere", pkg: ".", test: "TestHeight", edits: color},
		{name: "moved", pkg: ".", test: "TestHeight", edits: []edit{{"sky.go", "\treturn 5\n", ""}}},
		{name: "unguarded", pkg: ".", test: "TestGone", edits: color},
		{name: "idle", pkg: ".", test: "TestSkipped", edits: color},
	}
	var out bytes.Buffer
	r := &runner{root: dir, scratch: t.TempDir(), limit: time.Minute}
	if r.tryAll(t.Context(), all, 2, &out) {
		t.Error("got all well, want it not")
	}
	got := make(map[string]string)
	for line := range strings.Lines(out.String()) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[1] == ".:" {
			got[fields[2]] = fields[0]
		}
	}
	want := map[string]string{
		"killed": "killed", "embedded": "killed", "survivor": "SURVIVED", "uncompiled": "ROTTEN", "elsewhere": "SURVIVED",
		"moved": "ROTTEN", "unguarded": "ROTTEN", "idle": "skipped",
	}
	if !maps.Equal(got, want) || !strings.Contains(out.String(), "2 killed, 2 survived, 3 rotten, 1 skipped") {
		t.Errorf("got %v, want %v; output:\n%s", got, want, out.String())
	}
	out.Reset()
	if !r.tryAll(t.Context(), all[:2], 2, &out) {
		t.Errorf("only killed ones: got failure, want success; output:\n%s", out.String())
	}
}

func TestAfterTries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		remark string
		n      int
		want   string
	}{{"", 1, ""}, {"panic", 1, "panic"}, {"", 2, "2 tries"}, {"panic", 3, "panic, 3 tries"}} {
		if got := (result{killed, c.remark}).afterTries(c.n); got.remark != c.want || got.verdict != killed {
			t.Errorf("%q after %d: got %+v, want %q", c.remark, c.n, got, c.want)
		}
	}
}
