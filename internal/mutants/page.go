// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"path"
	"strings"
)

//go:embed page.md
var introduction string

// page is docs/mutants.md: the introduction, and for each package a table of
// its rules and the tests that guard them.
func page(all []mutant) string {
	var b strings.Builder
	b.WriteString(introduction)
	var packages []string
	rows := make(map[string]string)
	for _, m := range all {
		pkg := path.Dir(m.edits[0].file)
		if rows[pkg] == "" {
			packages = append(packages, pkg)
		}
		test := m.test
		if m.pkg != pkg {
			test += " (" + m.pkg + ")"
		}
		rows[pkg] += fmt.Sprintf("| %s | %s |\n", strings.ReplaceAll(m.name, "|", `\|`), test)
	}
	for _, pkg := range packages {
		fmt.Fprintf(&b, "\n## %s\n\n| rule | test that fails without it |\n|---|---|\n%s", pkg, rows[pkg])
	}
	fmt.Fprintf(&b, "\n%d mutants.\n", len(all))
	return b.String()
}
