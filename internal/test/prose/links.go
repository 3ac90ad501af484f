// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

var (
	destination = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	shown       = regexp.MustCompile(`!\[[^\]]*\]\(([^()\s]+)\)`)
)

// linksOf returns where the links and pictures of a page lead.
func linksOf(page string) []string { return found(destination, page) }

// picturesOf returns the pictures that a page shows. A link to a picture does not show it.
func picturesOf(page string) []string { return found(shown, page) }

func found(pattern *regexp.Regexp, page string) (all []string) {
	for _, f := range pattern.FindAllStringSubmatch(code.ReplaceAllString(unfenced(page), ""), -1) {
		all = append(all, f[1])
	}
	return all
}

// anchorsOf returns the names that GitHub gives to the headings of a page.
func anchorsOf(page string) (all []string) {
	seen := make(map[string]int)
	for line := range strings.Lines(unfenced(page)) {
		if !isHeading.MatchString(line) {
			continue
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, strings.TrimSpace(link.ReplaceAllString(isHeading.ReplaceAllString(line, ""), "$1")))
		if n := seen[name]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", name, n))
		} else {
			all = append(all, name)
		}
		seen[name]++
	}
	return all
}

var isHeading = regexp.MustCompile(`^#{1,6} +`)

// unfenced returns a page with an empty line in place of each block of code.
func unfenced(page string) string {
	var b strings.Builder
	fenced := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
			b.WriteByte('\n')
		case !fenced:
			b.WriteString(line)
		}
	}
	return b.String()
}
