// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclockui"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(tests{m}) }

type tests struct{ *testing.M }

// Run stops the browser before goleak looks for what is left.
func (t tests) Run() int {
	defer func() { stopChromium() }()
	return t.M.Run()
}

var stopChromium = func() {}

// chromium starts the one browser of all tests. Each test has tabs of its own there.
var chromium = sync.OnceValues(func() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	ctx, cancel := chromedp.NewContext(context.Background(), chromedp.WithAllocatorOptions(
		chromedp.ExecPath(path), chromedp.Flag("headless", "new"), chromedp.NoSandbox, chromedp.DisableGPU))
	stopChromium = func() {
		_ = chromedp.Cancel(ctx)
		cancel()
	}
	return ctx, chromedp.Do(ctx)
})

// byNight leaves a test to the night.
func byNight(t *testing.T) {
	t.Helper()
	if !kit.Nightly() {
		t.Skip("left to .ci/run nightly browser, which sets ASYNCLOCK_NIGHTLY")
	}
}

// mount is where the page of a site is, below its server's address.
const mount = "/admin/locks/"

// A site is a store and the page that shows it.
type site struct {
	t      *testing.T
	store  *memstore.Store
	mux    *http.ServeMux
	server *httptest.Server
}

// newSite serves a page with all options. It knows of one job, cron/nightly-report, and one election, leader/scheduler.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, store: memstore.New(), mux: http.NewServeMux()}
	page, err := asynclockui.Handler(s.client("page"), asynclockui.Everybody, asynclockui.WithForceUnlock(), asynclockui.WithChecks(s.store),
		asynclockui.WithJobs(job), asynclockui.WithElections(election), asynclockui.WithLogger(new(kit.Journal).Logger(0)))
	if err != nil {
		t.Fatal(err)
	}
	s.mux.Handle(mount, page)
	s.start("127.0.0.1:0")
	t.Cleanup(func() { s.stop() })
	return s
}

const job, election = "cron/nightly-report", "leader/scheduler"

// start begins to serve the page at an address of the network.
func (s *site) start(address string) {
	s.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: s.mux}} //nolint:gosec // of a test
	s.server.Start()
}

// stop ends the server as a crash would: it answers nothing that was asked. It returns the address.
func (s *site) stop() string {
	s.server.CloseClientConnections()
	s.server.Close()
	return s.server.Listener.Addr().String()
}

// client makes a client, whose leases and requests have this description.
func (s *site) client(holder string) *asynclock.Client {
	s.t.Helper()
	locks, err := asynclock.New(s.store, asynclock.WithDescription(holder), asynclock.WithoutLogger())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { locks.Close(s.t.Context()) }) // which has ended by then, so it waits for no lease
	return locks
}

// lock has a holder take a key.
func (s *site) lock(key, holder string) *asynclock.Lease {
	s.t.Helper()
	lease, err := s.client(holder).Lock(s.t.Context(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	return lease
}

// queue has somebody wait for a key, and returns when all see that.
func (s *site) queue(key, waiter string) <-chan asynclock.Result {
	s.t.Helper()
	locks := s.client(waiter)
	result := locks.LockChan(s.t.Context(), key)
	kit.Eventually(s.t, waiter+" waits for "+key, func() bool {
		info, err := locks.Inspect(s.t.Context(), key)
		return err == nil && slices.ContainsFunc(info.Queue, func(w store.WaiterInfo) bool { return w.Holder == waiter })
	})
	return result
}

// A tab looks at a page of a site. It fails the test if the console has an error in the end.
type tab struct {
	t    *testing.T
	ctx  context.Context
	site *site

	mu       sync.Mutex
	said     []string // by the console, and by exceptions
	expected string   // part of what it may say
}

// blank opens a tab without a page.
func (s *site) blank() *tab {
	s.t.Helper()
	parent, err := chromium()
	if err != nil {
		s.t.Fatalf("no Chromium: %v", err)
	}
	b := &tab{t: s.t, site: s}
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithListener(b.hear))
	b.ctx = ctx
	s.t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			s.t.Error(err)
		}
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, said := range b.said {
			if b.expected == "" || !strings.Contains(said, b.expected) {
				s.t.Errorf("the console says %s", said)
			}
		}
	})
	if err := chromedp.Do(ctx); err != nil { // makes it; what has a limit must not be the first
		s.t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(1280, 800))
	call(b, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	return b
}

// open opens a tab with a page, whose address is relative to that of the locks.
func (s *site) open(address string) *tab {
	s.t.Helper()
	b := s.blank()
	b.visit(address)
	return b
}

// hear notes what the console shows as an error or a warning. A violation of the Content-Security-Policy is among them.
func (b *tab) hear(event any) {
	said := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		said = fmt.Sprint(e.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		said = fmt.Sprintf("%s %v", e.Type, e.Args)
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelError && e.Entry.Level != log.EntryLevelWarning {
			return
		}
		said = fmt.Sprintf("%s %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, said)
}

// limited bounds what is done in a tab. Only what hangs reaches the limit.
func (b *tab) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, time.Minute)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// call sends a command of the protocol to a tab.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

// visit goes to a page, whose address is relative to that of the locks.
func (b *tab) visit(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.site.server.URL + mount + address))
}

// eval returns what an expression of JavaScript is.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait waits until an expression is true. It may be on another page by then.
func (b *tab) wait(expression string) {
	b.t.Helper()
	ctx, cancel := b.limited()
	defer cancel()
	kit.Eventually(b.t, expression, func() bool {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		return err == nil && is
	})
}

// click presses and lets go the mouse button above the first element of a selector.
func (b *tab) click(selector string) {
	b.t.Helper()
	p := b.middle(selector)
	b.do(chromedp.MouseClickXY(p.X, p.Y))
}

type point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// middle scrolls to the first element of a selector, and returns where it is then.
func (b *tab) middle(selector string) point {
	b.t.Helper()
	return eval[point](b, `(() => {
		const e = document.querySelector(`+quote(selector)+`);
		e.scrollIntoView({block: "center"});
		const r = e.getClientRects()[0];
		return {x: r.x + r.width / 2, y: r.y + r.height / 2};
	})()`)
}

// quote returns a text as JavaScript spells it.
func quote(text string) string {
	quoted, _ := json.Marshal(text) //nolint:errchkjson // a text can always be spelled
	return string(quoted)
}

// text is the expression for what is shown of the first element of a selector.
func text(selector string) string {
	return "document.querySelector(" + quote(selector) + ").innerText"
}

// cell is the expression for a cell of a key's row; undefined if the table does not have the key.
func cell(key, column string) string {
	return `[...document.querySelectorAll("#live tbody tr")].find((r) => r.cells[0].textContent === ` + quote(key) +
		`)?.querySelector("td[data-label=" + CSS.escape(` + quote(column) + `) + "]").textContent`
}
