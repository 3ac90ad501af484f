// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// mostWords is how many words a sentence of a page may have.
const mostWords = 30

// A phrase is what not to write, and what to write instead.
type phrase struct {
	pattern *regexp.Regexp
	instead string
}

var phrases = []phrase{
	{regexp.MustCompile(`(?i)\bbut for\b`), "except"},
	{regexp.MustCompile(`(?i)\bas a rule\b`), "usually"},
	{regexp.MustCompile(`(?i)\bof late\b`), "recently"},
	{regexp.MustCompile(`(?:^|[.:;] )(?:Who|Whoever|What) [^.?]*[.;](?:\s|$)`), "a subject that is no clause"},
}

// checkPhrases returns what is wrong with a text.
func checkPhrases(text string) (wrong []string) {
	for _, p := range phrases {
		if found := p.pattern.FindString(text); found != "" {
			wrong = append(wrong, fmt.Sprintf("%q: write instead: %s", strings.TrimSpace(found), p.instead))
		}
	}
	return wrong
}

// commentsOf returns the comments of a source file, one text for each block. What looks like one in a string is held to
// the same rules.
func commentsOf(name, source string) (all []string) {
	mark := "-- "
	if path.Ext(name) == ".go" {
		mark = "// "
	}
	inside := false
	for line := range strings.Lines(source) {
		before, text, found := strings.Cut(strings.TrimSpace(line), mark)
		alone := found && before == ""
		switch {
		case alone && inside:
			all[len(all)-1] += " " + text
		case found:
			all = append(all, text)
		}
		inside = alone
	}
	return all
}

var (
	code     = regexp.MustCompile("`[^`]*`")
	link     = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	sentence = regexp.MustCompile(`[.!?:](?:\s+|$)`)
)

// paragraphsOf returns the running text of a page: without code, tables and headings.
func paragraphsOf(page string) (all []string) {
	var current strings.Builder
	end := func() {
		if current.Len() > 0 {
			all = append(all, link.ReplaceAllString(code.ReplaceAllString(current.String(), "code"), "$1"))
		}
		current.Reset()
	}
	for line := range strings.Lines(unfenced(comment.ReplaceAllString(page, ""))) {
		text := strings.TrimSpace(line)
		if text == "" || text[0] == '|' || text[0] == '#' || strings.HasPrefix(line, "    ") {
			end()
			continue
		}
		if isItem.MatchString(text) {
			end()
		}
		current.WriteString(isItem.ReplaceAllString(text, "") + " ")
	}
	end()
	return all
}

var isItem = regexp.MustCompile(`^(?:[-*>]|\d+\.)\s+`)

// checkLength returns the sentences of a paragraph that have too many words.
func checkLength(paragraph string) (wrong []string) {
	for _, s := range sentence.Split(paragraph, -1) {
		if words := len(strings.Fields(s)); words > mostWords {
			wrong = append(wrong, fmt.Sprintf("%d words: %q", words, s))
		}
	}
	return wrong
}
