// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// written are the pages that a program writes.
var written = []string{"docs/benchmarks/report.md", "docs/benchmarks/families.md"}

func TestPagesAndComments(t *testing.T) {
	t.Parallel()
	root := os.DirFS(kit.Root(t))
	err := walk(root, func(name string) error {
		if !slices.Contains([]string{".go", ".lua", ".sql", ".md"}, path.Ext(name)) ||
			path.Base(path.Dir(name)) == "prose" || slices.Contains(written, name) {
			return nil
		}
		text, err := fs.ReadFile(root, name)
		check(t, name, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, name, text string) {
	t.Helper()
	if path.Ext(name) != ".md" {
		for _, c := range commentsOf(name, text) {
			for _, wrong := range checkPhrases(c) {
				t.Errorf("%s: %s", name, wrong)
			}
		}
		return
	}
	for _, p := range paragraphsOf(text) {
		for _, wrong := range append(checkPhrases(p), checkLength(p)...) {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}

func TestPhrases(t *testing.T) {
	t.Parallel()
	for text, wrong := range map[string]bool{
		"All but for one are equal.":        true,
		"It is, as a rule, fast.":           true,
		"Who asks again is told. More.":     true,
		"It ends. What is lost stays lost.": true,
		"Who holds the key?":                false,
		"A waiter who asks gets a reply.":   false,
		"Somewhat later it ends.":           false,
	} {
		if got := checkPhrases(text); (len(got) > 0) != wrong {
			t.Errorf("%q: got %q, want wrong: %t", text, got, wrong)
		}
	}
}

func TestLength(t *testing.T) {
	t.Parallel()
	const page = "# A heading of words\n\n- one `two three` [four](x)\n  five\n- six\n\n| a | table |\n\n```\ncode\n```\n\nLast: sentence. Here."
	want := []string{"one code four five ", "six ", "Last: sentence. Here. "}
	if got := paragraphsOf(page); !slices.Equal(got, want) {
		t.Errorf("paragraphs: got %q, want %q", got, want)
	}
	if got := checkLength(strings.Repeat("word ", mostWords) + ". Short."); len(got) != 0 {
		t.Errorf("a sentence of %d words: got %q, want nothing wrong", mostWords, got)
	}
	if got := checkLength(strings.Repeat("word ", mostWords+1) + ". Short."); len(got) != 1 {
		t.Errorf("a sentence of %d words: got %q, want it to be wrong", mostWords+1, got)
	}
}

func TestCommentsAreJoined(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"x.go":  "package x\n\n// One\n// two.\n\n// Three.\nvar s = 4 // Four\n",
		"x.lua": "-- One\n-- two.\nlocal a\n-- Three.\nlocal b\n  -- Four\n",
	} {
		if got, want := commentsOf(name, source), []string{"One two.", "Three.", "Four"}; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// Each row of the tables "Where to look" and "More places to look" names files, and functions or types that are in one
// of them.
func TestPagesNameWhatIsThere(t *testing.T) {
	t.Parallel()
	checkPlaces(t, "docs/design.md", "Where to look")
	checkPlaces(t, "docs/internals/client.md", "More places to look")
}

func checkPlaces(t *testing.T, page, heading string) {
	t.Helper()
	_, table, _ := strings.Cut(kit.ReadFile(t, page), "\n## "+heading+"\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := regexp.MustCompile(`(?m)^\| [A-Z][^|]*\| ([^|]*) \| ([^|]*) \|$`).FindAllStringSubmatch(table, -1)
	if len(rows) < 10 {
		t.Fatalf("%s: got %d rows under %s, want at least 10", page, len(rows), heading)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, row := range rows {
		var source strings.Builder
		folder := ""
		for _, name := range quoted.FindAllStringSubmatch(row[1], -1) {
			if strings.Contains(name[1], "/") {
				folder = path.Dir(name[1])
			}
			source.WriteString(kit.ReadFile(t, path.Join(folder, path.Base(name[1]))))
		}
		for _, name := range quoted.FindAllStringSubmatch(row[2], -1) {
			last := name[1][strings.LastIndexByte(name[1], '.')+1:]
			if !regexp.MustCompile(`(?m)^(local )?(func(tion)?|type) (\([^)]*\) )?` + last + `\b`).MatchString(source.String()) {
				t.Errorf("%s: %s has no %s", page, row[1], name[1])
			}
		}
	}
}
