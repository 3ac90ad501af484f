// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// committed returns a file of docs/pictures.
func committed(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "pictures", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The animation that the README shows is of the recording beside it, and was finished by finish. So
// whoever records again must draw again, and no test needs Node.js.
func TestCommittedReel(t *testing.T) {
	t.Parallel()
	svg, recording := committed(t, reelName), committed(t, castName)
	steps := moved.FindAllStringSubmatch(svg, -1)
	if len(steps) < 10 {
		t.Fatalf("got %d steps, want an animation", len(steps))
	}
	for _, want := range []string{castMark([]byte(recording)), still, reelAt(steps[len(steps)-1][1]) + `style="animation-`} {
		if strings.Count(svg, want) != 1 {
			t.Errorf("%s has no %q; draw it again: make pictures", reelName, want)
		}
	}
	if size := sized.FindStringSubmatch(svg); size == nil || !strings.HasPrefix(svg, size[0]+fmt.Sprintf(` viewBox="0 0 %s %s">`, size[1], size[2])) {
		t.Errorf("%s does not adapt to the page; draw it again: make pictures", reelName)
	}
	wantHarmless(t, reelName, svg)
}

// wantHarmless demands of a picture that it is XML and that it runs nothing and loads nothing.
func wantHarmless(t *testing.T, name, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "script" || e.Name.Local == "image" || e.Name.Local == "foreignObject") {
			t.Errorf("%s: got an element %s, want text and shapes only", name, e.Name.Local)
		}
	}
	for _, address := range regexp.MustCompile(`https?://[^"'\s)]*|url\([^#][^)]*\)|@import`).FindAllString(svg, -1) {
		if !strings.HasPrefix(address, "http://www.w3.org/") {
			t.Errorf("%s: got %s, want nothing from elsewhere", name, address)
		}
	}
}

// The recording has the terminal's size, and nothing of the machine that it was made on.
func TestCommittedCast(t *testing.T) {
	t.Parallel()
	first, rest, _ := strings.Cut(committed(t, castName), "\n")
	if want := strings.TrimSpace(string(cast{header: header{2, columns, rows}}.encode())); first != want {
		t.Errorf("got header %s, want %s", first, want)
	}
	var story strings.Builder
	for line := range strings.Lines(rest) {
		var event [3]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		text, _ := event[2].(string)
		if got := anonymous(text); got != text {
			t.Errorf("got %q, want %q", text, got)
		}
		story.WriteString(text)
	}
	if !strings.Contains(story.String(), "No update made under the lock was lost.") {
		t.Error("the recording does not end as the demo does")
	}
	if got := height(story.String()); got != rows {
		t.Errorf("got a recording that needs %d rows, want %d, or something scrolls away", got, rows)
	}
}

// height returns how many rows of a terminal a text needs, which moves up by escape sequences only.
func height(text string) int {
	row, most := 0, 0
	for _, step := range regexp.MustCompile(`\n|\x1b\[(\d+)A`).FindAllStringSubmatch(text, -1) {
		if up, err := strconv.Atoi(step[1]); err == nil {
			row -= up
		} else {
			row++
		}
		most = max(most, row)
	}
	return most + 1
}

func TestFinish(t *testing.T) {
	t.Parallel()
	const stage = `<g style="animation-duration:9s;animation-name:k">`
	const made = `<svg xmlns="x" width="20" height="1.5"><style>@keyframes k{0%{transform:translateX(-10px)}to{transform:translateX(-20px)}}</style>` + stage + `</g></svg>`
	const want = `<svg xmlns="x" width="20" height="1.5" viewBox="0 0 20 1.5"><title>asynclock demo</title>` +
		`<!-- sha256 of demo.cast: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad -->` +
		`<style>@media (prefers-reduced-motion: reduce){.reel{animation:none!important}}</style>` +
		`<style>@keyframes k{0%{transform:translateX(-10px)}to{transform:translateX(-20px)}}</style>` +
		`<g class="reel" transform="translate(-20)" style="animation-duration:9s;animation-name:k"></g></svg>` + "\n"
	if got, err := finish(made, []byte("abc")); string(got) != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	for _, part := range []string{stage, ` width="20"`, "-10px)}to{transform:translateX(-20px"} {
		broken := strings.ReplaceAll(made, part, "")
		if part[0] == '-' {
			broken = strings.ReplaceAll(made, "translateX", "translateY")
		}
		if _, err := finish(broken, nil); !errors.Is(err, errReel) {
			t.Errorf("%s: got %v, want %v", broken, err, errReel)
		}
	}
	if _, err := finish("", nil); !errors.Is(err, errReel) {
		t.Errorf("got %v of nothing, want %v", err, errReel)
	}
}
