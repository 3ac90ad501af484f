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

// isSpecial reports whether a shell might see more than itself in a character.
func isSpecial(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("_./:@%+,-", r)
}
