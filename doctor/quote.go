// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strconv"
	"strings"
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

// sentence gives a text its capital letter and its full stop. A command that stands alone, or behind a colon at the end,
// stays as it is to be typed.
func sentence(text string) string {
	if text == "" || strings.HasPrefix(text, command) {
		return text
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.Contains(text, ": "+command) {
		return text
	}
	return text + "."
}

// isSpecial reports whether a shell might see more than itself in a character.
func isSpecial(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("_./:@%+,-", r)
}
