// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestAdapt(t *testing.T) {
	t.Parallel()
	const chart = "<svg width=\"9\">\n<path style=\"fill:none;stroke:#000000\"/><text style=\"font-family:X;font-variant:normal;font-weight:normal;font-style:normal;font-size:9px\">a</text></svg>"
	got, err := adapt(chart)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(got, "</style>\n")
	if want := `<path style="fill:none;stroke:#000000"/><text style="font-size:9px">a</text></svg>`; rest != want {
		t.Errorf("got %s, want %s", rest, want)
	}
	_, dark, found := strings.Cut(head, "@media (prefers-color-scheme:dark){\n")
	for _, want := range []string{"text{fill:#F0F6FC}", `[style*="stroke:#000000"]{stroke:#F0F6FC!important}`, `[style*="fill:#FFFFFF"]{fill:#0D1117!important}`} {
		if !found || !strings.Contains(dark, want) {
			t.Errorf("got %s, want %s for dark pages", dark, want)
		}
	}
}

func TestAdaptRefuses(t *testing.T) {
	t.Parallel()
	for svg, want := range map[string]string{
		`<svg><path style="fill:#123456"/></svg>`: "#123456",
		`<svg><path style="stroke:#abcdef"/>`:     "#abcdef",
		"nothing":                                 "no SVG",
	} {
		if _, err := adapt(svg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", svg, err, want)
		}
	}
}
