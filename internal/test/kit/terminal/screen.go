// SPDX-License-Identifier: Apache-2.0

// Package terminal has terminals for tests of programs that need one: Open makes one, on Linux, and a Screen says what a
// person sees on it.
package terminal

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// A Screen is what a person sees of what a program writes to a terminal. It knows what programs send to a vt100, without
// colors, and passes over the rest. It may be read while it is written.
type Screen struct {
	mu       sync.Mutex
	rows     [][]rune
	row, col int
	region   [2]int // the first row that scrolls, and that behind the last
	inserts  bool   // what is written moves the rest of the row
	rest     []byte // the beginning of what is not complete yet
}

// NewScreen returns an empty screen of that size.
func NewScreen(rows, columns int) *Screen {
	s := &Screen{rows: make([][]rune, rows), region: [2]int{0, rows}}
	for i := range s.rows {
		s.rows[i] = blank(columns)
	}
	return s
}

func blank(n int) []rune { return []rune(strings.Repeat(" ", n)) }

// Lines are those of the screen, without spaces at their ends.
func (s *Screen) Lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := make([]string, 0, len(s.rows))
	for _, row := range s.rows {
		lines = append(lines, strings.TrimRight(string(row), " "))
	}
	return lines
}

// String is the whole screen.
func (s *Screen) String() string { return strings.TrimRight(strings.Join(s.Lines(), "\n"), "\n") }

// sequence is what begins with escape: a CSI with its parameters and its end, an OSC, or two bytes.
var sequence = regexp.MustCompile(`^\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()].|[^][()])`)

// longest is how long a sequence may be. A longer one is no sequence.
const longest = 256

// Write draws. It never fails.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, p...)
	for len(s.rest) > 0 {
		n := s.next(s.rest)
		if n == 0 {
			break
		}
		s.rest = s.rest[n:]
	}
	return len(p), nil
}

// next draws what comes next, and returns how long that was; 0: it is not complete.
func (s *Screen) next(p []byte) int {
	if p[0] == '\x1b' {
		found := sequence.FindSubmatch(p)
		if found == nil && len(p) < longest {
			return 0
		}
		if found == nil {
			return 1
		}
		switch {
		case len(found[2]) > 0:
			s.control(found[2][0], string(found[1]))
		case string(found[0]) == "\x1bM" && s.row == s.region[0]:
			s.scroll(true)
		case string(found[0]) == "\x1bM":
			s.row = max(s.row-1, 0)
		}
		return len(found[0])
	}
	if !utf8.FullRune(p) {
		return 0
	}
	r, n := utf8.DecodeRune(p)
	s.put(r)
	return n
}

func (s *Screen) put(r rune) {
	switch r {
	case '\r':
		s.col = 0
	case '\n':
		if s.row == s.region[1]-1 {
			s.scroll(false)
		} else {
			s.row = min(s.row+1, len(s.rows)-1)
		}
	case '\b':
		s.col = max(s.col-1, 0)
	default:
		if r < ' ' {
			return
		}
		row := s.rows[s.row]
		if s.col = min(s.col, len(row)-1); s.inserts {
			copy(row[s.col+1:], row[s.col:])
		}
		row[s.col] = r
		s.col++
	}
}

// scroll moves the rows of the region down by one, or up.
func (s *Screen) scroll(down bool) {
	region := s.rows[s.region[0]:s.region[1]]
	last := len(region) - 1
	if down {
		copy(region[1:], region[:last])
		region[0] = blank(len(region[0]))
		return
	}
	copy(region, region[1:])
	region[last] = blank(len(region[0]))
}

// control does what a CSI says.
func (s *Screen) control(what byte, parameters string) {
	first, second, _ := strings.Cut(parameters, ";")
	n := max(number(first), 1)
	switch what {
	case 'H', 'f':
		s.row, s.col = n-1, max(number(second), 1)-1
	case 'A':
		s.row -= n
	case 'B':
		s.row += n
	case 'C':
		s.col += n
	case 'D':
		s.col -= n
	case 'G':
		s.col = n - 1
	case 'd':
		s.row = n - 1
	case 'r':
		s.region = [2]int{min(n, len(s.rows)) - 1, len(s.rows)}
		if end := number(second); end >= n && end <= len(s.rows) {
			s.region[1] = end
		}
		s.row, s.col = 0, 0
	case 'h', 'l':
		if parameters == "4" {
			s.inserts = what == 'h'
		}
	case 'P':
		row := s.rows[s.row]
		erase(row, 0, copy(row[s.col:], row[min(s.col+n, len(row)):])+s.col)
	case 'J':
		s.eraseScreen(number(first))
	case 'K':
		erase(s.rows[s.row], number(first), s.col)
	}
	s.row, s.col = min(max(s.row, 0), len(s.rows)-1), min(max(s.col, 0), len(s.rows[0])-1)
}

// eraseScreen erases all after the cursor, or all before it (1), or all.
func (s *Screen) eraseScreen(which int) {
	for i, row := range s.rows {
		switch {
		case i == s.row:
			erase(row, which, s.col)
		case i > s.row && which != 1, i < s.row && which != 0:
			erase(row, 2, 0)
		}
	}
}

// erase erases what a row has from the column on, or up to it (1), or all (2).
func erase(row []rune, which, col int) {
	switch which {
	case 0:
		row = row[min(col, len(row)):]
	case 1:
		row = row[:min(col+1, len(row))]
	}
	for i := range row {
		row[i] = ' '
	}
}

// number reads a parameter; 0: there is none.
func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
