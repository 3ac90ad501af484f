// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// A project of Maven's has Java peers.
type project struct {
	dir      string   // from the module's root
	variable string   // tells tests where the peers are built
	everyday []string // of the profiles in its pom.xml, of which each makes a peer; without any it makes one
	nightly  []string // the others, that tests ask for with ASYNCLOCK_NIGHTLY
}

var projects = []project{
	{"internal/test/interop/spring", "ASYNCLOCK_SPRING", []string{"spring-7.1", "spring-6.5-old"}, []string{"spring-7.0", "spring-6.5"}},
	{"internal/test/interop/zookeeper", "ASYNCLOCK_ZOOKEEPER_PEER", nil, nil},
}

// profiles are those that make the peers that the tests play against.
func (p project) profiles() []string {
	if kit.Nightly() {
		return slices.Concat(p.everyday, p.nightly)
	}
	return p.everyday
}

// oldestJava is what the projects are compiled for.
const oldestJava = 17

// playsJava reports whether go test with these arguments may reach the tests
// that need the Java peers: no packages means all of them.
func playsJava(args []string) bool {
	_, packages := split(args)
	reaches := func(p string) bool {
		return p == "./..." || strings.HasPrefix(p, "./internal/...") || strings.HasPrefix(p, "./internal/test/...") || strings.HasPrefix(p, "./internal/test/interop")
	}
	return len(packages) == 0 || slices.ContainsFunc(packages, reaches)
}

// buildPeers builds the Java peers of the module at root, and returns what the tests learn
// about them.
func buildPeers(ctx context.Context, root string, log io.Writer) (env []string, err error) {
	for _, p := range projects {
		target, err := p.build(ctx, command{stderr: log, grace: grace}, root)
		if err != nil {
			return nil, err
		}
		env = append(env, p.variable+"="+target)
	}
	return env, nil
}

// build builds the project's peers and returns the directory that they are in. Maven
// downloads what it lacks from where its own settings say.
func (p project) build(ctx context.Context, cmd command, root string) (string, error) {
	cmd.dir = filepath.Join(root, p.dir)
	cmd.stdout = cmd.stderr
	profiles := p.profiles()
	for i := range max(1, len(profiles)) {
		args := []string{"-B", "-q", "-ntp", "-Dstyle.color=never", "package"}
		if len(profiles) > 0 {
			args = append(args, "-P", profiles[i])
		}
		fmt.Fprintf(cmd.stderr, "testenv: in %s: mvn %s\n", p.dir, strings.Join(args, " "))
		code, err := cmd.run(ctx, "mvn", args...)
		if err != nil {
			return "", err
		}
		if code != 0 {
			return "", fmt.Errorf("mvn %s in %s: exit code %d", strings.Join(args, " "), p.dir, code)
		}
	}
	return filepath.Join(cmd.dir, "target"), nil
}

// hasJava reports whether there is a compiler of Java that is new enough.
func hasJava(ctx context.Context) bool {
	text, err := exec.CommandContext(ctx, "javac", "-version").CombinedOutput()
	return err == nil && javaMajor(string(text)) >= oldestJava
}

// javaMajor reads what javac -version says; 0 if it names no version.
func javaMajor(banner string) int {
	for line := range strings.Lines(banner) { // others may come from the environment's JAVA_TOOL_OPTIONS
		if version, found := strings.CutPrefix(strings.TrimSpace(line), "javac "); found {
			digits, _, _ := strings.Cut(version, ".")
			digits, _, _ = strings.Cut(digits, "-") // 26-ea
			n, err := strconv.Atoi(digits)
			if err == nil {
				return n
			}
		}
	}
	return 0
}
