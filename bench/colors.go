// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

// darkColors has each color of a chart, and what it is on a dark page.
var darkColors = []struct{ light, dark string }{
	{"#FFFFFF", "#0D1117"}, // the background
	{"#000000", "#F0F6FC"}, // lines
	{"#808080", "#6E7681"}, // the grid
	{"#8C8C8C", "#9198A1"}, // the floors
	{"#C83C14", "#FF7B54"}, // asynclock
	{"#2850A0", "#79A8FF"}, // its peers
}

var (
	anyColor  = regexp.MustCompile(`(?:fill|stroke):(#[0-9A-Fa-f]{6})`)
	opening   = regexp.MustCompile(`<svg[^>]*>\n?`)
	textStyle = regexp.MustCompile(`font-family:[^;"]*;font-variant:normal;font-weight:normal;font-style:normal;`)
)

// adapt makes a chart follow the color scheme of its reader. Light colors stay in its elements, for
// programs without CSS. The background stays opaque, because the reader's system may prefer dark
// pages while the page is light. Fonts are what the reader's system has.
func adapt(svg string) (string, error) {
	var dark strings.Builder
	for _, c := range darkColors {
		for _, what := range []string{"fill", "stroke"} {
			fmt.Fprintf(&dark, "[style*=\"%s:%s\"]{%s:%s!important}\n", what, c.light, what, c.dark)
		}
	}
	for _, found := range anyColor.FindAllStringSubmatch(svg, -1) {
		if !strings.Contains(dark.String(), found[0]+`"]`) {
			return "", fmt.Errorf("a chart has the color %s, which has none for dark pages in darkColors", found[1])
		}
	}
	at := opening.FindStringIndex(svg)
	if at == nil {
		return "", fmt.Errorf("no SVG: %.40q", svg)
	}
	style := "<style>\ntext{font-family:\"Liberation Sans\",Arial,Helvetica,sans-serif}\n@media (prefers-color-scheme:dark){\ntext{fill:#F0F6FC}\n" +
		dark.String() + "}\n</style>\n"
	return svg[:at[1]] + style + textStyle.ReplaceAllString(svg[at[1]:], ""), nil
}
