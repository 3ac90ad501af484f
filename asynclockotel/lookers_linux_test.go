// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"bytes"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/terminal"
)

// A screen is where the command top runs.
type screen struct {
	terminal *os.File // the end that the command has
	sent     kit.Journal
	turn     sync.Mutex // of those who look
	width    uint16
}

// startTop starts the command top in a terminal, which is read until the test ends.
func (s *stage) startTop() {
	s.Helper()
	person, program := terminal.Open(s)
	s.top = &screen{terminal: program, width: 110}
	s.top.resize(s)
	top := exec.Command(s.program, "top")
	top.Env = append(os.Environ(), serverVariable+"="+s.redis.URL(), "TERM=vt100")
	top.Stdin, top.Stdout, top.Stderr = program, program, program
	top.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := top.Start(); err != nil {
		s.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends when the terminal is closed; the test's end waits for it
		defer close(ended)
		_, _ = io.Copy(&s.top.sent, person)
	}()
	s.Cleanup(func() {
		_ = top.Process.Kill()
		_ = top.Wait()
		_ = person.Close()
		<-ended
	})
}

// resize makes the terminal a column wider, or narrower. A program then draws all of its screen anew.
func (c *screen) resize(t testing.TB) {
	t.Helper()
	c.width ^= 1
	if err := unix.IoctlSetWinsize(int(c.terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: c.width}); err != nil {
		t.Error(err)
	}
}

var sequence = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|.)`)

// lines are those that top shows.
func (c *screen) lines(t testing.TB) []string {
	t.Helper()
	c.turn.Lock()
	defer c.turn.Unlock()
	before := len(c.sent.String())
	c.resize(t)
	var drawn string
	kit.Eventually(t, "top draws its screen", func() (all bool) {
		_, drawn, _ = strings.Cut(c.sent.String()[before:], "\x1b[2J") // it is erased, and then drawn from above
		drawn, _, all = strings.Cut(drawn, "q quit")
		return all
	})
	return strings.Split(sequence.ReplaceAllString(drawn, ""), "\r\n")
}

// A row is what top and the page show of a key.
type row struct {
	isThere bool
	holder  string
	left    float64 // seconds of the TTL
}

// rowOf reads the cells of a key: mode, holder, since when, TTL left, waiting, grants.
func rowOf(key string, cells []string) row {
	if len(cells) != 7 || cells[0] != key {
		return row{}
	}
	left, _ := strconv.ParseFloat(strings.TrimSuffix(cells[4], "s"), 64) // nobody has it: -
	return row{true, cells[2], left}
}

// onTop is the row of a key in top.
func (s *stage) onTop(key string) (r row) {
	for _, line := range s.top.lines(s) {
		if strings.HasPrefix(line, key+" ") {
			r = rowOf(key, strings.Fields(line))
		}
	}
	return r
}

var tag = regexp.MustCompile(`<[^>]*>`)

// onPage is the row of a key on the page.
func (s *stage) onPage(key string) (r row) {
	for line := range strings.Lines(s.get("./?q=" + url.QueryEscape(key))) {
		if strings.HasPrefix(line, "<tr><th") {
			r = rowOf(key, strings.Fields(html.UnescapeString(tag.ReplaceAllString(line, " "))))
		}
	}
	return r
}

// get loads a page.
func (s *stage) get(address string) string {
	return s.send(httptest.NewRequestWithContext(s.Context(), http.MethodGet, "/"+strings.TrimPrefix(address, "./"), nil))
}

// post sends a form to a page.
func (s *stage) post(address string, form url.Values) string {
	r := httptest.NewRequestWithContext(s.Context(), http.MethodPost, "/"+address, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.send(r)
}

func (s *stage) send(r *http.Request) string {
	w := httptest.NewRecorder()
	s.page.ServeHTTP(w, r)
	return w.Body.String()
}

// ask runs the command, and returns what it prints. A code other than 0 says how bad a finding is.
func (s *stage) ask(args ...string) []byte {
	s.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(s.Context(), s.program, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), serverVariable+"="+s.redis.URL()), &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || len(out) == 0 {
		s.Errorf("asynclock %q: got %v, %s, want an answer", args, err, &stderr)
	}
	return out
}

// A finding is one as the command prints it.
type finding struct{ Check, Verdict, Fact, Fix string }

// find is what the command doctor or why finds.
func (s *stage) find(args ...string) (found []finding) {
	s.Helper()
	for d := json.NewDecoder(bytes.NewReader(s.ask(args...))); ; {
		var f finding
		if err := d.Decode(&f); errors.Is(err, io.EOF) {
			return found
		} else if err != nil {
			s.Errorf("asynclock %q: got %v, want findings", args, err)
			return found
		}
		found = append(found, f)
	}
}

// why is what the command why finds.
func (s *stage) why(key string) []finding {
	s.Helper()
	return s.find("why", "--json", key)
}

// wantFinding fails the test unless the check has this verdict, and the fact has the texts.
func (s *stage) wantFinding(found []finding, check, verdict string, texts ...string) {
	s.Helper()
	for _, f := range found {
		if f.Check != check {
			continue
		}
		for _, text := range texts {
			if !strings.Contains(f.Fact+" "+f.Fix, text) || f.Verdict != verdict {
				s.Errorf("%s: got %s %q, %q, want %s with %q", check, f.Verdict, f.Fact, f.Fix, verdict, text)
			}
		}
		return
	}
	s.Errorf("got %v, want %s", found, check)
}

// wantText fails the test unless a text has all these parts.
func (s *stage) wantText(what, got string, want ...string) {
	s.Helper()
	for _, part := range want {
		if !strings.Contains(got, part) {
			s.Errorf("%s: got %s, want %q in it", what, got, part)
		}
	}
}

// look looks ever again until something is seen, or until the end.
func look(end <-chan struct{}, seen func() bool) bool {
	for !seen() {
		select {
		case <-end:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}
