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
		"": true, "-v -run X": true, "./...": true, "-run X ./...": true, "./internal/test/interop/spring": true, "./internal/test/interop/...": true,
		"./store/redisstore": false, "-v ./store/... ./asynclock": false, ".": false,
		"./store/redisstore ./internal/test/interop/spring": true,
	} {
		if got := playsJava(strings.Fields(args)); got != want {
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

// The projects' profiles are those that are built every night.
func TestProfilesAreThoseOfTheProject(t *testing.T) {
	t.Setenv("ASYNCLOCK_NIGHTLY", "1")
	for _, p := range projects {
		pom, err := os.ReadFile(filepath.Join("../../..", p.dir, "pom.xml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, profile := range p.profiles() {
			if !bytes.Contains(pom, []byte("<id>"+profile+"</id>")) {
				t.Errorf("%s: pom.xml has no profile %s", p.dir, profile)
			}
		}
		if got, want := bytes.Count(pom, []byte("<profile>")), len(p.profiles()); got != want {
			t.Errorf("%s: profiles in pom.xml: got %d, want the %d that are built", p.dir, got, want)
		}
	}
}

// Maven is told each profile, and what it fails with comes out.
func TestBuildPeers(t *testing.T) {
	for name, nightly := range map[string]string{"every day": "0", "nightly": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ASYNCLOCK_NIGHTLY", nightly)
			testBuildPeers(t)
		})
	}
}

func testBuildPeers(t *testing.T) {
	t.Helper()
	bin, root := t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin)
	for _, p := range projects {
		if err := os.MkdirAll(filepath.Join(root, p.dir), 0o700); err != nil {
			t.Fatal(err)
		}
		script(t, bin, "mvn", `echo "$@"`)
		var log bytes.Buffer
		dir, err := p.build(t.Context(), command{stderr: &log}, root)
		if want := filepath.Join(root, p.dir, "target"); err != nil || dir != want {
			t.Errorf("%s: got %q, %v; want %q", p.dir, dir, err, want)
		}
		for _, profile := range p.profiles() {
			if !strings.Contains(log.String(), " package -P "+profile+"\n") {
				t.Errorf("%s: profile %s was not built: %s", p.dir, profile, log.String())
			}
		}
		if got, want := strings.Count(log.String(), "\n-B "), max(1, len(p.profiles())); got != want {
			t.Errorf("%s: Maven ran %d times, want %d: %s", p.dir, got, want, log.String())
		}
		script(t, bin, "mvn", `exit 3`)
		if _, err := p.build(t.Context(), command{stderr: &log}, root); err == nil || !strings.Contains(err.Error(), "exit code 3") {
			t.Errorf("%s: Maven fails: got %v, want its exit code", p.dir, err)
		}
	}
}
