// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"fmt"
	"go/scanner"
	"go/token"
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

// commentsOf returns the comments of a source file, one text for each block.
func commentsOf(name, source string) []string {
	switch path.Ext(name) {
	case ".go":
		return goComments(source)
	case ".lua", ".sql":
		return lineComments(source, "--")
	default:
		return nil
	}
}

func goComments(source string) (all []string) {
	lines := strings.Split(source, "\n")
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", files.Base(), len(source)), []byte(source), nil, scanner.ScanComments)
	last := -1 // the line of the comment before, if that stands alone
	for {
		pos, tok, text := s.Scan()
		if tok == token.EOF {
			return all
		}
		if tok != token.COMMENT || !strings.HasPrefix(text, "// ") {
			continue
		}
		line := files.Position(pos).Line
		alone := strings.HasPrefix(strings.TrimSpace(lines[line-1]), "//")
		if text = text[3:]; alone && line == last+1 {
			all[len(all)-1] += " " + text
		} else {
			all = append(all, text)
		}
		if last = -1; alone {
			last = line
		}
	}
}

func lineComments(source, mark string) (all []string) {
	inside := false
	for line := range strings.Lines(source) {
		text, found := strings.CutPrefix(strings.TrimSpace(line), mark+" ")
		switch {
		case !found:
		case inside:
			all[len(all)-1] += " " + text
		default:
			all = append(all, text)
		}
		inside = found
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
	page = comment.ReplaceAllString(page, "")
	current, fenced := "", false
	end := func() {
		if current != "" {
			all = append(all, link.ReplaceAllString(code.ReplaceAllString(current, "code"), "$1"))
		}
		current = ""
	}
	for line := range strings.Lines(page) {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "```"):
			fenced = !fenced
			end()
		case fenced:
		case text == "", text[0] == '|', text[0] == '#', strings.HasPrefix(line, "    "):
			end()
		default:
			if isItem.MatchString(text) {
				end()
				text = isItem.ReplaceAllString(text, "")
			}
			current += text + " "
		}
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
