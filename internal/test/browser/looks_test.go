// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"context"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/once"
)

// Each page can be read on any screen: nothing is beside it, and every text stands out from what is behind it.
func TestEveryPageCanBeRead(t *testing.T) {
	byNight(t)
	s := newSite(t)
	s.fill()
	s.queue(key, strings.Repeat("y", 100))
	b := s.blank()
	for _, address := range []string{"./", "./?q=none", "key?key=" + key, "key?key=" + longKey, "jobs", "stats", "checks", "checks?key=" + key, "unlock?key=" + key, "unlock?key=" + longKey, "none"} {
		b.expected = "404 (Not Found)" // what the last one gets
		b.visit(address)
		b.look(address)
	}
	b.visit("checks")
	b.click("main button")
	b.wait(`document.querySelectorAll(".findings li").length > 0`)
	b.look("what was found")
}

// longKey has no place at which a line could end.
var longKey = strings.Repeat("x", 200)

// fill takes some keys, and runs the job.
func (s *site) fill() {
	s.t.Helper()
	for _, k := range []string{key, longKey, election} {
		s.lock(k, "billing-7f9c")
	}
	_, err := once.Do(s.t.Context(), s.client("cron-5d2e"), job, time.Hour, func(context.Context, once.Run) error { return nil })
	if err != nil {
		s.t.Fatal(err)
	}
}

// look checks what is on a tab, in light and dark, narrow and wide.
func (b *tab) look(name string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.emulate(scheme)
		for _, width := range []int64{360, 1280} {
			b.do(chromedp.EmulateViewport(width, 800))
			seen := eval[struct {
				Texts int      `json:"texts"`
				Wrong []string `json:"wrong"`
			}](b, appearance)
			if seen.Texts < 6 {
				b.t.Errorf("%s, %s, %d wide: got %d texts, want more", name, scheme, width, seen.Texts)
			}
			for _, wrong := range seen.Wrong {
				b.t.Errorf("%s, %s, %d wide: %s", name, scheme, width, wrong)
			}
		}
	}
}

func (b *tab) emulate(scheme string) {
	b.t.Helper()
	feature := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme}
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{feature}})
}

// appearance counts the texts that are shown, and says what is wrong: a page that is wider than its window, and texts
// whose contrast is below 4.5, as WCAG 2.2 counts it. Texts that CSS adds count, too.
const appearance = `(() => {
	const parts = (color) => color.match(/[\d.]+/g).map(Number);
	const luminance = (color) => parts(color).slice(0, 3)
		.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const color = getComputedStyle(e).backgroundColor;
			if ((parts(color)[3] ?? 1) > 0) return color;
		}
		return "rgb(255, 255, 255)";
	};
	let texts = 0;
	const wrong = [], root = document.documentElement;
	const look = (e, pseudo) => {
		texts++;
		const color = getComputedStyle(e, pseudo).color, back = behind(e);
		const [dark, light] = [luminance(color), luminance(back)].sort((x, y) => x - y);
		const contrast = (light + 0.05) / (dark + 0.05);
		if (!(contrast >= 4.5)) wrong.push("contrast " + contrast.toFixed(2) + " of " + color + " on " + back + ": " + e.outerHTML);
	};
	if (root.scrollWidth > root.clientWidth) wrong.push("it is " + root.scrollWidth + " wide, in " + root.clientWidth);
	for (const e of document.body.querySelectorAll("*")) {
		if (!e.checkVisibility()) continue;
		if (e.matches("input") || [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim())) look(e);
		for (const pseudo of ["::before", "::after"]) {
			if (!["none", "normal"].includes(getComputedStyle(e, pseudo).content)) look(e, pseudo);
		}
	}
	return {texts, wrong};
})()`

var update = flag.Bool("update", false, "write the picture of the page, docs/pictures/page.png")

const (
	pictureWidth, pictureHeight = 1280, 640
	mostBytes                   = 120_000
)

// The picture of the page is there, and not too large to load.
func TestPicture(t *testing.T) {
	name := filepath.Join(kit.Root(t), "docs", "pictures", "page.png")
	if *update {
		if err := os.WriteFile(name, draw(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	picture, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := png.DecodeConfig(bytes.NewReader(picture))
	if err != nil || c.Width != pictureWidth || c.Height != pictureHeight || len(picture) > mostBytes {
		t.Errorf("got %d×%d in %d bytes, %v, want %d×%d in %d at most", c.Width, c.Height, len(picture), err, pictureWidth, pictureHeight, mostBytes)
	}
}

// draw returns a picture of the locks page with realistic keys.
func draw(t *testing.T) []byte {
	t.Helper()
	s := newSite(t)
	b := s.open("./")
	b.do(chromedp.EmulateViewport(pictureWidth, pictureHeight))
	b.emulate("light")
	for _, c := range []struct {
		key, holder string
		waiters     []string
	}{
		{election, "scheduler-b81d", []string{"scheduler-03ac", "scheduler-5e77"}},
		{"invoices/2026-11", "billing-7f9c", []string{"billing-c204"}},
		{job, "cron-5d2e", nil},
		{"migrations/main", "deploy-914", nil},
		{"reindex/products", "search-66b0", nil},
		{"stock/sku-20931", "warehouse-1a4f", []string{"shop-88d1", "shop-2c6e", "shop-f7a3"}},
		{key, "billing-c204", nil},
		{"orders/4712", "billing-e51b", nil},
	} {
		s.lock(c.key, c.holder)
		for _, waiter := range c.waiters {
			s.queue(c.key, waiter)
		}
		b.wait("parseFloat(" + cell(c.key, "Held for") + ") >= 2")
	}
	ctx, cancel := b.limited()
	defer cancel()
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	return shot
}
