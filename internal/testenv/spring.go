// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The project of the Java peers, from the module's root, and the profiles in its
// pom.xml that are built.
const springProject = "interop/spring"

var springProfiles = []string{"spring-7.1", "spring-7.0", "spring-6.5", "spring-6.5-old"}

// oldestJava is what the project is compiled for.
const oldestJava = 17

// playsSpring reports whether go test with these arguments may reach the tests
// that need the Java peers: no packages means all of them.
func playsSpring(args []string) bool {
	isPackage := func(a string) bool { return strings.HasPrefix(a, ".") }
	reaches := func(a string) bool { return a == "./..." || strings.HasPrefix(a, "./interop") }
	return !slices.ContainsFunc(args, isPackage) || slices.ContainsFunc(args, reaches)
}

// buildSpring builds the peers and returns the directory that they are in. Maven
// downloads what it lacks from where its own settings say.
func buildSpring(ctx context.Context, cmd command, root string) (string, error) {
	cmd.dir = filepath.Join(root, springProject)
	cmd.stdout = cmd.stderr
	for _, profile := range springProfiles {
		fmt.Fprintf(cmd.stderr, "testenv: building %s, %s\n", springProject, profile)
		code, err := cmd.run(ctx, "mvn", "-B", "-q", "-ntp", "-P", profile, "package")
		if err != nil {
			return "", err
		}
		if code != 0 {
			return "", fmt.Errorf("mvn -P %s: exit code %d", profile, code)
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
