// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version that .goreleaser.yaml links into what is downloaded. It does not depend on
// which tags the clone had that was built in. Empty: Go has written a version, or there is none.
var release string

// A versionJSON says what was built. Fields may be added, never renamed or removed.
type versionJSON struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`   // empty if it was not built in a clone
	Modified bool   `json:"modified"` // the clone was not as committed
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `version prints the version, the commit, and the Go that built the program. A
program that 'go install' made from a version has no commit.

With --json: version, commit (empty if unknown), modified (whether the clone was
not as committed), go, os and arch.
`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			v := newVersionJSON(info, release)
			if a.asJSON {
				return printJSON(a.stdout, v)
			}
			_, err := fmt.Fprintln(a.stdout, v)
			return err
		},
	}
	a.addJSON(cmd, "")
	return cmd
}

// newVersionJSON returns what the Go toolchain wrote into the program, which may be nothing.
func newVersionJSON(info *debug.BuildInfo, release string) versionJSON {
	v := versionJSON{Version: release, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info == nil {
		info = new(debug.BuildInfo)
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	if v.Version == "" {
		v.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v versionJSON) String() string {
	commit := ""
	if v.Commit != "" {
		commit = ", commit " + v.Commit
	}
	if v.Modified {
		commit += " (modified)"
	}
	return fmt.Sprintf("asynclock %s%s, %s, %s/%s", v.Version, commit, v.Go, v.OS, v.Arch)
}
