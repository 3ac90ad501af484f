// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"
)

// A screen prints the story line by line. On a terminal it also keeps a panel below the story that
// shows the present state. It is not safe for concurrent use.
type screen struct {
	out   io.Writer
	live  bool // there is a panel
	color bool
	width func() int

	panel int // lines of the panel now on the terminal
}

// The terminal's control sequences that we use.
const (
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	plain = "\x1b[0m"

	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	eraseBelow = "\x1b[J"
)

func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" || runtime.GOOS == "windows" {
		return s // a Windows console must be switched to this mode first
	}
	s.live = true
	s.color = os.Getenv("NO_COLOR") == ""
	s.width = func() int {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
		return 80
	}
	fmt.Fprint(out, hideCursor)
	return s
}

// close restores the terminal and leaves the story on it.
func (s *screen) close() {
	if s.live {
		fmt.Fprint(s.out, s.erase()+showCursor)
	}
}

// say prints one line of the story.
func (s *screen) say(format string, args ...any) {
	fmt.Fprint(s.out, s.erase()+fmt.Sprintf(format, args...)+"\n")
}

// show replaces the panel.
func (s *screen) show(lines []string) {
	if !s.live {
		return
	}
	var b strings.Builder
	b.WriteString(s.erase())
	for _, line := range lines {
		b.WriteString(s.cut(line) + "\n")
	}
	s.panel = len(lines)
	fmt.Fprint(s.out, b.String())
}

// erase returns the text that removes the panel from the terminal.
func (s *screen) erase() string {
	if s.panel == 0 {
		return ""
	}
	up := fmt.Sprintf("\x1b[%dA\r", s.panel)
	s.panel = 0
	return up + eraseBelow
}

// cut shortens a line so that the terminal does not wrap it. A wrapped line would make the panel
// taller than expected. Control sequences take no room.
func (s *screen) cut(line string) string {
	room := s.width() - 1
	var b strings.Builder
	inSequence := false
	for _, r := range line {
		switch {
		case r == '\x1b':
			inSequence = true
		case inSequence:
			inSequence = r != 'm'
		case room == 0:
			continue
		default:
			room--
		}
		b.WriteRune(r)
	}
	return b.String()
}

// paint colors text, if colors are enabled.
func (s *screen) paint(color, text string) string {
	if !s.color {
		return text
	}
	return color + text + plain
}
