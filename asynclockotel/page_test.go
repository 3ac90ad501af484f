// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of metrics into docs/observability.md")

// The page has the table of metrics that the code makes.
func TestThePageHasTheTable(t *testing.T) {
	t.Parallel()
	const page = "../docs/observability.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(text), "updates this table -->\n")
	_, after, ended := strings.Cut(rest, "<!-- end of metrics -->")
	if !begun || !ended {
		t.Fatal("the page has no place for the table")
	}
	want := before + "updates this table -->\n\n" + table() + "\n<!-- end of metrics -->" + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Error("the table is not that of the code: go test ./asynclockotel -update")
	}
}

// table is the table of metrics in Markdown.
func table() string {
	var b strings.Builder
	b.WriteString("| metric | kind | unit | what it says | attributes |\n|---|---|---|---|---|\n")
	for _, in := range instruments {
		attributes := make([]string, 0, len(in.attributes))
		for _, a := range in.attributes {
			attributes = append(attributes, "`"+a+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", in.name, in.kind, in.unit, in.description, strings.Join(attributes, ", "))
	}
	return b.String()
}
