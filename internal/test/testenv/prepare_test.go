// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		banner string
		want   string // in the error; "" for none
	}{
		{"Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", ""},
		{"Redis server v=6.2.0 sha=00000000:0", ""},
		{"Server v=10.1.0 sha=00000000:0", ""},
		{"Redis server v=6.0.16 sha=00000000:0", "too old"},
		{"Redis server v=5.9.9 sha=00000000:0", "too old"},
		{"command not found", "names no version"},
		{"Redis server v=99999999999999999999.0.0 ", "out of range"},
	} {
		err := checkVersion("redis-server", c.banner)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("checkVersion(%q) = %v, want an error with %q", c.banner, err, c.want)
		}
	}
}

func TestWithoutRightsItSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var log bytes.Buffer
	err := prepare(t.Context(), plan{compiles: true, java: true, promtool: true}, &log)
	if err == nil {
		t.Fatal("got no error, want advice")
	}
	for _, want := range []string{"redis-server, version 6.2 or newer", "C compiler", "JDK, version 17", "Maven", "apt-get install redis-server gcc libc6-dev default-jdk-headless maven prometheus"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
}

// The machine of this test has a sudo that asks nothing, and an apt-get that
// knows one package.
func TestWithRightsItInstalls(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	script(t, bin, "sudo", `[ "$1" = -n ] && shift && exec "$@"`)
	script(t, bin, "env", `[ "$1" = DEBIAN_FRONTEND=noninteractive ] && shift && exec "$@"`)
	script(t, bin, "apt-get", `
case "$*" in
*" update") ;;
*" install --no-install-recommends redis-server")
	echo '#!/bin/sh' >`+bin+`/redis-server
	echo 'echo Redis server v=7.0.15 sha=0' >>`+bin+`/redis-server
	/bin/chmod +x `+bin+`/redis-server ;;
*) echo unexpected: "$@"; exit 9 ;;
esac`)
	var log bytes.Buffer
	if err := prepare(t.Context(), plan{}, &log); err != nil {
		t.Fatalf("got %v after %s", err, log.String())
	}
	if got, err := exec.LookPath("redis-server"); got != filepath.Join(bin, "redis-server") {
		t.Errorf("got %s, %v, want it in %s", got, err, bin)
	}
}

func TestFailedInstallationKeepsTheAdvice(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	script(t, bin, "sudo", `shift; exec "$@"`)
	script(t, bin, "env", `shift; exec "$@"`)
	script(t, bin, "apt-get", `echo no network; exit 100`)
	var log bytes.Buffer
	err := prepare(t.Context(), plan{}, &log)
	if err == nil || !strings.Contains(err.Error(), "apt-get update") || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("got %v, want what failed and what to do", err)
	}
	if !strings.Contains(log.String(), "no network") {
		t.Errorf("got log %q, want what apt-get said", log.String())
	}
}

func script(t *testing.T, dir, name, body string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}
