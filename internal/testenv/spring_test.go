// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhichPackagesNeedTheJavaPeers(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{
		"": true, "-v -run X": true, "./...": true, "-run X ./...": true, "./interop/spring": true, "./interop/...": true,
		"./store/redisstore": false, "-v ./store/... ./asynclock": false, ".": false,
		"./store/redisstore ./interop/spring": true,
	} {
		if got := playsSpring(strings.Fields(args)); got != want {
			t.Errorf("%q: got %v, want %v", args, got, want)
		}
	}
}

func TestJavaMajor(t *testing.T) {
	t.Parallel()
	for banner, want := range map[string]int{
		"javac 17.0.15\n": 17, "javac 21\n": 21, "javac 1.8.0_402\n": 1, "javac 26-ea\n": 26,
		"Picked up JAVA_TOOL_OPTIONS: -Dx=y\njavac 25.0.1\n": 25, "": 0, "javac": 0, "not found": 0,
	} {
		if got := javaMajor(banner); got != want {
			t.Errorf("%q: got %d, want %d", banner, got, want)
		}
	}
}

// The project's profiles are those that are built.
func TestProfilesAreThoseOfTheProject(t *testing.T) {
	t.Parallel()
	pom, err := os.ReadFile(filepath.Join("../..", springProject, "pom.xml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range springProfiles {
		if !bytes.Contains(pom, []byte("<id>"+profile+"</id>")) {
			t.Errorf("pom.xml has no profile %s", profile)
		}
	}
	if got, want := bytes.Count(pom, []byte("<profile>")), len(springProfiles); got != want {
		t.Errorf("profiles in pom.xml: got %d, want the %d that are built", got, want)
	}
}

// Maven is told each profile, and what it fails with comes out.
func TestBuildSpring(t *testing.T) {
	bin, root := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin)
	if err := os.MkdirAll(filepath.Join(root, springProject), 0o700); err != nil {
		t.Fatal(err)
	}
	script(t, bin, "mvn", `echo "$@"`)
	var log bytes.Buffer
	dir, err := buildSpring(t.Context(), command{stderr: &log}, root)
	if want := filepath.Join(root, springProject, "target"); err != nil || dir != want {
		t.Errorf("got %q, %v; want %q", dir, err, want)
	}
	for _, profile := range springProfiles {
		if !strings.Contains(log.String(), "-P "+profile+" package\n") {
			t.Errorf("profile %s was not built: %s", profile, log.String())
		}
	}
	script(t, bin, "mvn", `exit 3`)
	if _, err := buildSpring(t.Context(), command{stderr: &log}, root); err == nil || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("Maven fails: got %v, want its exit code", err)
	}
}
