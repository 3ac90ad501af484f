// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"io"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

func TestVersionOfABuild(t *testing.T) {
	t.Parallel()
	built := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "57c6b0561f1f0a8e0000000000000000000000ff"}
	clean := debug.BuildSetting{Key: "vcs.modified", Value: "false"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for name, c := range map[string]struct {
		info    *debug.BuildInfo
		release string
		want    string
	}{
		"go install of a version": {built("v0.1.0"), "", "v0.1.0"},
		"a clone":                 {built("(devel)", commit, clean), "", "(devel), commit 57c6b0561f1f"},
		"a modified clone":        {built("(devel)", commit, modified), "", "(devel), commit 57c6b0561f1f (modified)"},
		"a download":              {built("(devel)", commit, clean), "v0.1.0", "v0.1.0, commit 57c6b0561f1f"},
		"no version":              {built(""), "", "(devel)"},
		"nothing":                 {nil, "", "(devel)"},
		"a short revision":        {built("v1", debug.BuildSetting{Key: "vcs.revision", Value: "7"}), "", "v1, commit 7"},
	} {
		want := "asynclock " + c.want + ", " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
		if got := newVersionJSON(c.info, c.release).String(); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	info, _ := debug.ReadBuildInfo()
	want := newVersionJSON(info, "")
	if got := outputOf(t, "version"); got != want.String()+"\n" {
		t.Errorf("got %q, want %q", got, want)
	}
	var got versionJSON
	if err := json.Unmarshal([]byte(outputOf(t, "version", "--json")), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v and error %v, want %+v", got, err, want)
	}
}

// TestReleaseIsLinkedIn: the linker says nothing about a variable that is not there.
func TestReleaseIsLinkedIn(t *testing.T) {
	t.Parallel()
	text := kit.ReadFile(t, ".goreleaser.yaml")
	if want := "-X " + reflect.TypeFor[app]().PkgPath() + ".release=v{{"; !strings.Contains(text, want) {
		t.Errorf("got no %q in .goreleaser.yaml", want)
	}
}

func outputOf(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	if code := Run(t.Context(), args, strings.NewReader(""), &out, io.Discard); code != 0 {
		t.Errorf("asynclock %v: got code %d, want 0", args, code)
	}
	return out.String()
}
