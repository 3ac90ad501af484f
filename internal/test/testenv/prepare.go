// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// The oldest Redis that the Redis store supports.
const (
	redisMajor = 6
	redisMinor = 2
)

// prepare installs what is missing where that can be done without asking anybody. It
// fails unless there is a redis-server that will do.
func prepare(ctx context.Context, plan plan, log io.Writer) error {
	if missing := findMissing(ctx, plan); len(missing) > 0 {
		if err := install(ctx, missing, log); err != nil {
			return fmt.Errorf("%w\n%s", err, advice(missing))
		}
		if missing := findMissing(ctx, plan); len(missing) > 0 {
			return fmt.Errorf("still missing after the installation\n%s", advice(missing))
		}
	}
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return err
	}
	banner, err := output(ctx, bin, "--version")
	if err != nil {
		return err
	}
	return checkVersion(bin, banner)
}

// A plan is what is to be done, beside starting servers.
type plan struct {
	compiles bool // with the race detector, which takes a C compiler
	java     bool // against the Java peers

	zooKeeper bool // against a ZooKeeper
	promtool  bool // alerts are checked
}

// A need is something to be found on this machine.
type need struct {
	what     string
	packages []string // that have it, on Debian
}

// findMissing says what is not here. Sentinels are redis-server too, under
// another name, and are not asked for.
func findMissing(ctx context.Context, plan plan) []need {
	var missing []need
	if _, err := exec.LookPath("redis-server"); err != nil {
		what := fmt.Sprintf("redis-server, version %d.%d or newer", redisMajor, redisMinor)
		missing = append(missing, need{what, []string{"redis-server"}})
	}
	missing = append(missing, missingDatabases()...)
	if plan.compiles && !compilesC(ctx) {
		missing = append(missing, need{"a C compiler with its library's headers", []string{"gcc", "libc6-dev"}})
	}
	if plan.java && !hasJava(ctx) {
		missing = append(missing, need{fmt.Sprintf("a JDK, version %d or newer", oldestJava), []string{"default-jdk-headless"}})
	}
	if _, err := exec.LookPath("mvn"); plan.java && err != nil {
		missing = append(missing, need{"Maven", []string{"maven"}})
	}
	if _, err := exec.LookPath("promtool"); plan.promtool && err != nil {
		missing = append(missing, need{"promtool, which checks alerts", []string{"prometheus"}})
	}
	return append(missing, missingZooKeeper(plan)...)
}

// missingDatabases says which of them are not here.
func missingDatabases() (missing []need) {
	for _, k := range servers.Databases {
		if _, err := k.Find(); err != nil {
			missing = append(missing, need{k.Name, k.Packages})
		}
	}
	return missing
}

// missingZooKeeper says what is not here of what a ZooKeeper takes.
func missingZooKeeper(plan plan) []need {
	if !plan.zooKeeper || servers.FindZooKeeper() == nil {
		return nil
	}
	return []need{{"ZooKeeper, as Debian has it, with Java", []string{servers.ZooKeeperPackage}}}
}

// compilesC tries the compiler that go would use.
func compilesC(ctx context.Context) bool {
	cc, err := output(ctx, "go", "env", "CC")
	if err != nil || cc == "" {
		return false
	}
	words := strings.Fields(cc)
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], "-x", "c", "-fsyntax-only", "-")...)
	cmd.Stdin = strings.NewReader("#include <stdlib.h>\n")
	return cmd.Run() == nil
}

func packages(missing []need) []string {
	var names []string
	for _, n := range missing {
		names = append(names, n.packages...)
	}
	return names
}

// advice tells a person what to do.
func advice(missing []need) string {
	var b strings.Builder
	b.WriteString("These tests need")
	for _, n := range missing {
		b.WriteString("\n  - " + n.what)
	}
	b.WriteString("\nInstall them and run me again. On Debian and Ubuntu:\n")
	b.WriteString("  apt-get install " + strings.Join(packages(missing), " "))
	return b.String()
}

// install fetches packages with apt-get: as root, or through a sudo that asks
// no password.
func install(ctx context.Context, missing []need, log io.Writer) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return errors.New("something is missing, and this machine has no apt-get to install it")
	}
	words := []string{"env", "DEBIAN_FRONTEND=noninteractive", apt, "-q", "-y", "-o", "DPkg::Lock::Timeout=300"}
	if os.Geteuid() != 0 {
		if exec.CommandContext(ctx, "sudo", "-n", "true").Run() != nil {
			return errors.New("something is missing, and I have neither root's rights nor sudo without a password")
		}
		words = append([]string{"sudo", "-n"}, words...)
	}
	names := packages(missing)
	fmt.Fprintf(log, "testenv: installing %s\n", strings.Join(names, " "))
	if _, err := exec.LookPath("systemctl"); err == nil {
		fmt.Fprintln(log, "testenv: Debian may start servers of its own, of what is installed; the tests leave them alone")
	}
	for _, step := range [][]string{{"update"}, append([]string{"install", "--no-install-recommends"}, names...)} {
		cmd := exec.CommandContext(ctx, words[0], append(words[1:], step...)...)
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("apt-get %s: %w", step[0], err)
		}
	}
	return nil
}

var versionPattern = regexp.MustCompile(`\bv=(\d+)\.(\d+)\.`)

// checkVersion reads what redis-server --version says.
func checkVersion(bin, banner string) error {
	m := versionPattern.FindStringSubmatch(banner)
	if m == nil {
		return fmt.Errorf("%s --version says %q, which names no version", bin, banner)
	}
	major, errMajor := strconv.Atoi(m[1])
	minor, errMinor := strconv.Atoi(m[2])
	if err := errors.Join(errMajor, errMinor); err != nil {
		return err
	}
	if major < redisMajor || major == redisMajor && minor < redisMinor {
		return fmt.Errorf("%s is version %d.%d, too old: put %d.%d or newer first in PATH",
			bin, major, minor, redisMajor, redisMinor)
	}
	return nil
}
