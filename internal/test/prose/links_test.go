// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// Each link of a page to this repository leads to a file that exists, and to a heading that it has.
func TestLinks(t *testing.T) {
	t.Parallel()
	root := os.DirFS(kit.Root(t))
	site := &site{root: root, anchors: make(map[string][]string)}
	err := walk(root, func(name string) error {
		if path.Ext(name) != ".md" || name == "internal/test/chaos/page.md" { // the beginning of docs/chaos.md
			return nil
		}
		text, err := fs.ReadFile(root, name)
		for _, target := range linksOf(string(text)) {
			if wrong := site.checkLink(name, target); wrong != "" {
				t.Errorf("%s: the link %s: %s", name, target, wrong)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A site is the pages of the repository. It reads the headings of each page once.
type site struct {
	root    fs.FS
	anchors map[string][]string
}

// checkLink returns what is wrong with a link on a page.
func (s *site) checkLink(page, target string) string {
	u, err := url.Parse(target)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme != "":
		return "" // another site
	}
	name := page
	if u.Path != "" {
		name = path.Join(path.Dir(page), u.Path)
	}
	if _, err := fs.Stat(s.root, name); err != nil {
		return err.Error()
	}
	if u.Fragment == "" || path.Ext(name) != ".md" {
		return ""
	}
	anchors, known := s.anchors[name]
	if !known {
		text, err := fs.ReadFile(s.root, name)
		if err != nil {
			return err.Error()
		}
		anchors = anchorsOf(string(text))
		s.anchors[name] = anchors
	}
	if !slices.Contains(anchors, u.Fragment) {
		return name + " has no such heading"
	}
	return ""
}

func TestLinksAreFound(t *testing.T) {
	t.Parallel()
	const page = "[a](x.md) and [two\nlines](y.md#z), ![c](c.svg)\n\n```\n[no](code)\n```\n`[no](code)` [![d](d.svg)](e)\n"
	if got, want := linksOf(page), []string{"x.md", "y.md#z", "c.svg", "d.svg", "e"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnchors(t *testing.T) {
	t.Parallel()
	const page = "# A `Lock`, held\n\n```sh\n# no heading\n```\n## Same\n## Same\n### What's [linked](x)?\n"
	if got, want := anchorsOf(page), []string{"a-lock-held", "same", "same-1", "whats-linked"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBrokenLinks(t *testing.T) {
	t.Parallel()
	site := &site{root: os.DirFS(kit.Root(t)), anchors: make(map[string][]string)}
	for target, broken := range map[string]bool{
		"design.md":                     false,
		"design.md#tokens":              false,
		"#contents-that-are-not":        true,
		"design.md#no-such-heading":     true,
		"no-such-page.md":               true,
		"../store/memstore":             false,
		"https://example.com/x.md#none": false,
	} {
		if wrong := site.checkLink("docs/production.md", target); (wrong != "") != broken {
			t.Errorf("%s: got %q, want it broken: %t", target, wrong, broken)
		}
	}
}
