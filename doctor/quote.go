// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strconv"
	"strings"
	"unicode"
)

// quoted returns a key as a word of a shell, and as a string of Go if it could harm a terminal.
func quoted(key string) string {
	switch {
	case strings.ContainsFunc(key, func(r rune) bool { return !strconv.IsPrint(r) }):
		return strconv.Quote(key)
	case key != "" && !strings.ContainsFunc(key, isSpecial):
		return key
	}
	return "'" + strings.ReplaceAll(key, "'", `'\''`) + "'"
}

// command begins what is to be typed.
const command = "asynclock "

// sentence gives a text its capital letter and its full stop, unless it has them. A command at its end stays as it is
// to be typed, and so does a setting at its beginning.
func sentence(text string) string {
	if text == "" || strings.HasPrefix(text, command) {
		return text
	}
	if first, rest, _ := strings.Cut(text, " "); !strings.HasPrefix(rest, "=") && !strings.ContainsFunc(first, isNoLetter) {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	if strings.HasSuffix(text, ".") || strings.Contains(text, ": "+command) || strings.Contains(text, "ACL SETUSER") {
		return text
	}
	return text + "."
}

func isNoLetter(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != ',' && r != ':' }

// isSpecial reports whether a shell might see more than itself in a character.
func isSpecial(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("_./:@%+,-", r)
}
