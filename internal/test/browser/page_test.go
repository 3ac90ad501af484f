// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/kit"
)

const key = "orders/4711"

// The table follows the locks, and the page is not loaded again.
func TestTheTableFollowsTheLocks(t *testing.T) {
	byNight(t)
	s := newSite(t)
	b := s.open("./")
	eval[bool](b, "window.isSame = true")
	lease := s.lock(key, "billing-1")
	b.wait(cell(key, "Holder") + ` === "billing-1"`)
	next := s.queue(key, "billing-2")
	b.wait(cell(key, "Waiting") + ` === "1"`)
	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wait(cell(key, "Holder") + ` === "billing-2"`)
	lease, err := (<-next).Lease()
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.wait(cell(key, "Holder") + ` === undefined`) // ten seconds after the last grant
	if !eval[bool](b, "window.isSame") {
		t.Error("the page was loaded again")
	}
}

// The key is taken from its holder once it has been typed, and not before.
func TestTheKeyIsTakenByWhoTypesIt(t *testing.T) {
	byNight(t)
	s := newSite(t)
	lease := s.lock(key, "billing-1")
	first, second := s.queue(key, "billing-2"), s.queue(key, "billing-3")
	b := s.open("key?key=" + key)
	b.expected = "400 (Bad Request)" // what the wrong key gets
	b.wait(text("#live ol") + `.match(/billing-2[^]*billing-3/) !== null`)

	force := func(typed string) {
		b.click("#force")
		b.wait(`document.querySelector("#typed") !== null`)
		b.do(chromedp.SendKeys(chromedp.CSS("#typed"), typed+kb.Enter))
	}
	force("orders/4712")
	b.wait(text("main [role=status]") + ` === "That is another key. Nothing was taken."`)
	if err := lease.Err(); err != nil {
		t.Errorf("the lease has ended: %v", err)
	}
	b.click("main a")
	b.wait(`document.querySelector("#force") !== null`)
	force(key)
	b.wait(text("main [role=status]") + ` === "The key was taken from its holder."`)
	<-lease.Done()
	if err := lease.Err(); !errors.Is(err, asynclock.ErrForced) {
		t.Errorf("got %v, want ErrForced", err)
	}
	if _, err := (<-first).Lease(); err != nil {
		t.Errorf("the first of the queue does not have the key: %v", err)
	}
	select {
	case <-second:
		t.Error("the second of the queue has an answer, too")
	default:
	}
}

// Keys and holders that others have chosen are text and nothing else.
func TestHostileTextsAreText(t *testing.T) {
	byNight(t)
	const hostile = `<script>window.hacked=1</script><img src=x onerror=window.hacked=1>"'&`
	s := newSite(t)
	s.lock(hostile, hostile)
	s.queue(hostile, hostile+"2")
	b := s.blank()
	query := "key=" + strings.NewReplacer("<", "%3C", ">", "%3E", `"`, "%22", "&", "%26", " ", "%20").Replace(hostile)
	for _, address := range []string{"./", "./?q=%3Cscript%3E", "key?" + query, "unlock?" + query, "checks?" + query, "jobs"} {
		b.visit(address)
		if address != "jobs" && !strings.HasPrefix(address, "unlock") && !strings.HasPrefix(address, "checks") {
			b.wait(text("#status") + ` === "live"`) // JavaScript has written what is shown now
		}
		if address != "jobs" && !strings.Contains(eval[string](b, text("main")), hostile) {
			t.Errorf("%s does not show the text", address)
		}
		if eval[bool](b, `"hacked" in window || document.querySelector("img, main script") !== null`) {
			t.Errorf("%s has made the text a part of the page", address)
		}
	}
}

// The keyboard alone reaches everything. The place is seen, and kept when the table changes.
func TestTheKeyboardIsEnough(t *testing.T) {
	byNight(t)
	s := newSite(t)
	s.lock(key, "billing-1")
	b := s.open("./")
	b.wait(text("#status") + ` === "live"`)
	var reached []string
	for _, name := range tabStops {
		b.do(chromedp.KeyEvent(kb.Tab))
		f := eval[focus](b, focused)
		reached = append(reached, f.Name)
		if !f.Outlined || !f.Seen {
			t.Errorf("at %s: got %+v, want an outline that is seen", name, f)
		}
	}
	if !slices.Equal(reached, tabStops) {
		t.Fatalf("got %q, want %q", reached, tabStops)
	}
	for range 2 {
		was := eval[string](b, cell(key, "TTL left")+"+"+cell(key, "Held for"))
		b.wait(cell(key, "TTL left") + "+" + cell(key, "Held for") + " !== " + quote(was))
	}
	if f, want := eval[focus](b, focused), tabStops[len(tabStops)-1]; f.Name != want || !f.Outlined {
		t.Errorf("after updates: got %+v, want %s with an outline", f, want)
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.wait(`location.href.endsWith("/key?key=orders%2F4711") && ` + text("h1") + ` === "Key orders/4711"`)
}

// tabStops are what the locks page leads to, in order: ids, or texts where there is no id.
var tabStops = []string{
	"To the content", "Locks", "Jobs and leaders", "Checks", "This client", "q", "Show", "key", "Show", "pause",
	"by-key", "by-mode", "by-holder", "by-held", "by-ttl", "by-waiting", "by-grants", "key?key=orders%2F4711",
}

// A focus is the element that has it.
type focus struct {
	Name     string `json:"name"`
	Outlined bool   `json:"outlined"`
	Seen     bool   `json:"seen"`
}

const focused = `(() => {
	const e = document.activeElement, style = getComputedStyle(e), at = e.getBoundingClientRect();
	return {
		name: e.id || e.textContent, outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
		seen: at.left >= 0 && at.right <= innerWidth && at.top >= 0 && at.bottom <= innerHeight,
	};
})()`

// Nothing changes while the page is paused, and all is there after that.
func TestAPausedPageStands(t *testing.T) {
	byNight(t)
	s := newSite(t)
	paused, other := s.open("./"), s.open("./")
	paused.wait(text("#status") + ` === "live"`)
	paused.click("#pause")
	paused.wait(text("#status") + ` === "paused"`)
	before := eval[string](paused, text("#live"))
	s.lock(key, "billing-1")
	for range 2 {
		was := eval[string](other, text("#live"))
		other.wait(text("#live") + ` !== ` + quote(was))
	}
	if got := eval[string](paused, text("#live")); got != before {
		t.Errorf("while it is paused: got %q, want %q", got, before)
	}
	paused.click("#pause")
	paused.wait(text("#status") + ` === "live" && ` + cell(key, "Holder") + ` === "billing-1"`)
}

// A click counts although the table changes while the button is down.
func TestAClickOutlastsAnUpdate(t *testing.T) {
	byNight(t)
	s := newSite(t)
	s.lock(key, "billing-1")
	b, other := s.open("./"), s.open("./")
	b.wait(text("#status") + ` === "live"`)
	p := b.middle("#live tbody a")
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, p.X, p.Y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	for range 2 {
		was := eval[string](other, text("#live"))
		other.wait(text("#live") + ` !== ` + quote(was))
	}
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, p.X, p.Y, chromedp.ButtonLeft, chromedp.ClickCount(1)))
	b.wait(text("h1") + ` === "Key orders/4711"`)
}

// Without JavaScript the page shows all, reloads itself, and takes the forms.
func TestThePageNeedsNoJavaScript(t *testing.T) {
	byNight(t)
	s := newSite(t)
	s.lock(key, "billing-1")
	s.lock("invoices/2026-11", "billing-2")
	b := s.blank()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.visit("./")
	if !eval[bool](b, cell(key, "Holder")+` === "billing-1" && document.querySelector("meta[http-equiv=refresh]") !== null`) {
		t.Errorf("the page lacks the row, or does not reload itself: %s", eval[string](b, "document.documentElement.outerHTML"))
	}
	s.lock("orders/4712", "billing-3")
	b.wait(cell("orders/4712", "Holder") + ` === "billing-3"`)
	b.do(chromedp.SendKeys(chromedp.CSS("#q"), "4711"+kb.Enter))
	b.wait(`location.search === "?q=4711" && ` + cell(key, "Holder") + ` === "billing-1"`)
	if got := eval[int](b, `document.querySelectorAll("#live tbody tr").length`); got != 1 {
		t.Errorf("got %d rows, want 1", got)
	}
}

// The page says that it is old when the server has gone, and is live when it has come back.
func TestTheServerGoesAndComesBack(t *testing.T) {
	byNight(t)
	s := newSite(t)
	b := s.open("./")
	b.expected = "net::ERR_"
	b.wait(text("#status") + ` === "live"`)
	address := s.stop()
	b.wait(text("#status") + `.startsWith("old: ")`)
	s.start(address)
	s.lock(key, "billing-1")
	b.wait(text("#status") + ` === "live" && ` + cell(key, "Holder") + ` === "billing-1"`)
}

// A page that was refused asks again, and has one stream even if it was paused meanwhile.
func TestARefusedPageAsksOnce(t *testing.T) {
	byNight(t)
	s := newSite(t)
	page := s.mux
	var refuses atomic.Bool
	var asked atomic.Int64 // for events
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			asked.Add(1)
			if refuses.Load() {
				http.Error(w, "not now", http.StatusServiceUnavailable)
				return
			}
		}
		page.ServeHTTP(w, r)
	})
	s.start(s.stop())
	s.lock(key, "billing-1")
	b := s.open("./")
	b.expected = "Failed to load resource"
	b.wait(text("#status") + ` === "live"`)
	refuses.Store(true)
	s.server.CloseClientConnections()
	kit.Eventually(t, "it was refused", func() bool { return asked.Load() == 2 })
	b.wait(text("#status") + `.startsWith("old: ")`)
	refuses.Store(false)
	b.click("#pause")
	b.click("#pause")
	b.wait(text("#status") + ` === "live"`)
	before := asked.Load()
	for range 6 { // the request that was due is not made beside them
		was := eval[string](b, text("#live"))
		b.wait(text("#live") + ` !== ` + quote(was))
	}
	if got := asked.Load(); got != before {
		t.Errorf("it asked %d times more for events, while it had them", got-before)
	}
}

// A text that is selected stays so, although the table changes.
func TestASelectionOutlastsUpdates(t *testing.T) {
	byNight(t)
	s := newSite(t)
	s.lock(key, "billing-1")
	b := s.open("./")
	b.wait(text("#status") + ` === "live"`)
	eval[bool](b, `getSelection().selectAllChildren(document.querySelector("tbody th")) === undefined`)
	was := eval[string](b, text("#live"))
	s.lock("another", "billing-2")
	other := s.open("./")
	other.wait(text("#live") + `.includes("another")`)
	if got := eval[string](b, `getSelection().toString()`); got != key {
		t.Errorf("got selection %q, want %q as before", got, key)
	}
	if got := eval[string](b, text("#live")); got != was {
		t.Errorf("got %q, want it to wait for the end of the selection", got)
	}
	b.wait(text("#status") + `.includes("waits while")`)
	eval[bool](b, `getSelection().removeAllRanges() === undefined`)
	b.wait(text("#live") + `.includes("another") && ` + text("#status") + ` === "live"`)
}
