// SPDX-License-Identifier: Apache-2.0

// Package plain makes texts of keys, holders and durations that are harmless to a terminal, a table and a page.
package plain

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Text returns text unchanged if it is harmless and can be seen. Otherwise it returns the text quoted.
func Text(text string) string {
	for _, r := range text {
		if !strconv.IsPrint(r) {
			return strconv.Quote(text)
		}
	}
	if text == "" || strings.TrimSpace(text) != text || !utf8.ValidString(text) {
		return strconv.Quote(text)
	}
	return text
}

// Line returns the first line of a text, with a question mark for each character that can't be printed.
func Line(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// Start returns the first bytes of a text, as Text does, with dots if there are more.
func Start(text string, most int) string {
	if len(text) <= most {
		return Text(text)
	}
	return Text(strings.ToValidUTF8(text[:most], "")) + "…"
}

// TTL says what remains of a TTL. It has none where somebody else has written the record.
func TTL(d time.Duration) string {
	if d < 0 {
		return "none"
	}
	return Seconds(d)
}

// Seconds formats a duration, rounded to a tenth of a second.
func Seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
}

// Stamp returns a time to the second.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
