// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// javaVersions names the JVM, the libraries in it, and ZooKeeper, as far as they are there.
func javaVersions(ctx context.Context, a arena) (versions []string) {
	if a.java != nil {
		said, err := exec.CommandContext(ctx, "java", "-version").CombinedOutput()
		if first, _, _ := strings.Cut(string(said), "\n"); err == nil {
			versions = append(versions, first)
		}
		for _, name := range []string{"redisson", "curator-recipes"} {
			if jars, _ := filepath.Glob(filepath.Join("java", "target", "lib", name+"-*.jar")); len(jars) > 0 { // the pattern is right
				versions = append(versions, strings.TrimSuffix(filepath.Base(jars[0]), ".jar"))
			}
		}
	}
	if a.zooKeeper == "" {
		return versions
	}
	if version, err := servers.ZooKeeperVersion(ctx, a.zooKeeper); err == nil {
		versions = append(versions, "ZooKeeper "+version)
	}
	return versions
}
