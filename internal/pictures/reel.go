// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// svgTerm makes an animation of a recording: pictures side by side, which CSS moves past a window.
// The date holds back newer releases of what it depends on, so that the bytes stay the same.
var svgTerm = []string{"npx", "--yes", "--before=2026-11-01", "svg-term-cli@2.1.1", "--window", "--no-cursor"}

// animate returns the animation of a recording.
func animate(ctx context.Context, recording []byte) ([]byte, error) {
	dir, err := os.MkdirTemp("", "asynclock-pictures-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	in := filepath.Join(dir, castName)
	if err := os.WriteFile(in, recording, 0o600); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	command := exec.CommandContext(ctx, svgTerm[0], append(svgTerm[1:], "--in", in)...)
	command.Stdout, command.Stderr = &out, os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("svg-term, by %s of Node.js: %w", svgTerm[0], err)
	}
	return finish(out.String(), recording)
}

var (
	sized    = regexp.MustCompile(`^<svg [^>]*width="([\d.]+)" height="([\d.]+)"`)
	animated = regexp.MustCompile(`<g style="animation-duration:[^"]*"`)
	moved    = regexp.MustCompile(`transform:translateX\((-[\d.]+)px\)`)
)

// errReel says that svg-term's output is not as expected.
var errReel = errors.New("svg-term's output has no animation that we know")

// finish adds to an animation what svg-term leaves out. These are the hash of the recording, a title for screen
// readers, a size that adapts to the page, and a place at which the stage stands while nothing moves it: at the end.
func finish(svg string, recording []byte) ([]byte, error) {
	size := sized.FindStringSubmatch(svg)
	stage := animated.FindStringIndex(svg)
	steps := moved.FindAllStringSubmatch(svg, -1)
	if size == nil || stage == nil || len(steps) == 0 {
		return nil, errReel
	}
	opening := len(size[0])
	inside := opening + strings.IndexByte(svg[opening:], '>') + 1
	return []byte(svg[:opening] + fmt.Sprintf(` viewBox="0 0 %s %s"`, size[1], size[2]) + svg[opening:inside] +
		"<title>asynclock demo</title>" + castMark(recording) + still +
		svg[inside:stage[0]] + reelAt(steps[len(steps)-1][1]) + svg[stage[0]+len("<g "):] + "\n"), nil
}

// castMark names the recording of an animation.
func castMark(recording []byte) string {
	return fmt.Sprintf("<!-- sha256 of %s: %x -->", castName, sha256.Sum256(recording))
}

// still stops the animation if the reader asked for less motion.
const still = "<style>@media (prefers-reduced-motion: reduce){.reel{animation:none!important}}</style>"

// reelAt begins the stage, moved so far. The animation overrides that. A program that draws pictures and knows no
// animations shows the finished end.
func reelAt(end string) string { return `<g class="reel" transform="translate(` + end + `)" ` }
