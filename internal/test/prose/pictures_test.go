// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"os"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

func TestEachPictureIsShown(t *testing.T) {
	t.Parallel()
	pictures, err := unshown(os.DirFS(kit.Root(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pictures {
		t.Errorf("%s: no page shows it", name)
	}
}

func TestUnshownPictures(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	root := fstest.MapFS{
		"README.md":            file("![a](docs/a.svg) [b](docs/b.svg) `![c](docs/c.png)`\n\n```\n![c](docs/c.png)\n```\n"),
		"docs/sub/page.md":     file("[![two\nlines](../d.GIF)](../e.webp)\n"),
		"docs/.hidden/page.md": file("![f](../f.jpg)\n"),
		"docs/a.svg":           file(""),
		"docs/b.svg":           file(""),
		"docs/c.png":           file(""),
		"docs/d.GIF":           file(""),
		"docs/e.webp":          file(""),
		"docs/f.jpg":           file(""),
		"docs/demo.cast":       file(""),
		"other/g.svg":          file(""),
	}
	got, err := unshown(root)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"docs/b.svg", "docs/c.png", "docs/e.webp", "docs/f.jpg"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
