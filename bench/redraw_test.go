// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The report and the charts in docs are what their results.json says, byte for byte.
func TestRedrawnReportIsTheCommittedOne(t *testing.T) {
	t.Parallel()
	const docs = "../docs/benchmarks"
	dir := t.TempDir()
	copyFile(t, filepath.Join(docs, resultsName), filepath.Join(dir, resultsName))
	if err := redraw(dir); err != nil {
		t.Fatal(err)
	}
	committed, drawn := names(t, docs), names(t, dir)
	committed = slices.DeleteFunc(committed, func(name string) bool { return strings.HasPrefix(name, "families.") }) // of runs by themselves
	if !slices.Equal(committed, drawn) {
		t.Fatalf("got %q, want %q", drawn, committed)
	}
	for _, name := range drawn {
		if read(t, filepath.Join(dir, name)) != read(t, filepath.Join(docs, name)) {
			t.Errorf("%s is not what %s says; draw it again: make pictures", name, resultsName)
		}
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.WriteFile(to, []byte(read(t, from)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRedrawRefuses(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"":                                  "unexpected end",
		`{"results":[{"workload":""}]}`:     "can't be a file's",
		`{"results":[{"workload":"../x"}]}`: "can't be a file's",
		`{"results":[{"workload":"x"}]}`:    "has no metrics",
		`{"results":[{"workload":"x","metrics":[{"name":"p50"}],"outcomes":[{"peer":"y","values":[[1],[]]}]}]}`: "0 values for 1 metrics",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, resultsName), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := redraw(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", data, err, want)
		}
		if got := names(t, dir); len(got) != 1 {
			t.Errorf("%s: got files %q, want nothing drawn", data, got)
		}
	}
	if err := redraw(""); err == nil {
		t.Error("got no error without a directory")
	}
	if err := redraw(t.TempDir()); err == nil {
		t.Error("got no error without results")
	}
}

// A missing value stays missing: it is not 0.
func TestMissingValuesAreRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), resultsName)
	const data = `{"results":[{"workload":"x","metrics":[{"name":"p50"}],"outcomes":[{"peer":"y","values":[[null],[null],[3]]},{"peer":"z","leftOut":"why"}]}]}`
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := readReport(path)
	if err != nil {
		t.Fatal(err)
	}
	peers := r.Results[0].Peers
	if got := peers[0].summary(0).Median; got != 3 {
		t.Errorf("got a median of %v, want 3", got)
	}
	if got := r.Results[0].table().RenderMarkdown(); !strings.Contains(got, "| 3 (1 of 3 rounds) |") {
		t.Errorf("got %s, want to be told that two rounds have no value", got)
	}
	if got := peers[1]; got.Peer != "z" || got.Left != "why" || got.Rounds != nil {
		t.Errorf("got %+v, want z left out", got)
	}
}
