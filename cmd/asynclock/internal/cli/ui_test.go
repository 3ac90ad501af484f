// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// A browser has cookies. It asks for the host that it is told to, at the address where the page is.
type browser struct {
	*testing.T

	client http.Client
	page   *url.URL // without the token
}

// browse returns one that has opened the address which ui has printed.
func (c *talk) browse(t *testing.T) (*browser, string) {
	t.Helper()
	c.says(t, "\n")
	printed := strings.TrimSpace(c.stdout.String())
	page, err := url.Parse(printed)
	if err != nil {
		t.Fatal(err)
	}
	page.RawQuery = ""
	b := &browser{T: t, page: page}
	b.client.Transport = &http.Transport{DisableKeepAlives: true}
	b.client.Jar, _ = cookiejar.New(nil)
	return b, printed
}

// ask returns the status and the text of an answer. With a form it sends that.
func (b *browser) ask(address, host string, form url.Values) (int, string) {
	b.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(b.Context(), method, address, body)
	if err != nil {
		b.Fatal(err)
	}
	if r.Host = host; host != "" { // the jar has none for it
		for _, cookie := range b.client.Jar.Cookies(b.page) {
			r.AddCookie(cookie)
		}
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got, err := b.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		b.Fatal(err)
	}
	return got.StatusCode, string(text)
}

// TestUI: the page is for who has opened the address with the token, by a name of this machine.
func TestUI(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	redis.hold(t, "orders/1", "other")
	b, printed := redis.talk(t, "ui", "--job", "orders/job", "orders/").browse(t)
	want := func(status int, address, host, text string) {
		t.Helper()
		if got, page := b.ask(address, host, nil); got != status || !strings.Contains(page, text) {
			t.Errorf("%s of %q: got %d and %s, want %d and %s", address, host, got, page, status, text)
		}
	}
	page := b.page.String()
	want(http.StatusForbidden, page, "", "may not see")
	want(http.StatusForbidden, page+"?token=x", "", "may not see")
	want(http.StatusForbidden, strings.Replace(printed, b.page.Path, "/", 1), "", "asynclock ui has printed")
	want(http.StatusMisdirectedRequest, printed, "other.example", "localhost")
	want(http.StatusMisdirectedRequest, printed, "127.0.0.1.other.example:80", "localhost")
	want(http.StatusOK, printed, "", "orders/1")
	cookies := b.client.Jar.Cookies(b.page)
	if root := b.client.Jar.Cookies(b.page.JoinPath("..")); len(cookies) != 1 || len(root) != 0 {
		t.Errorf("got cookies %v, and %v for all of the host, want one for the page alone", cookies, root)
	}
	want(http.StatusOK, page, "", "a test")
	want(http.StatusOK, page+"jobs", "localhost:99", "none is known")
	want(http.StatusOK, page+"checks", "[::1]", "fit for locks")
	want(http.StatusOK, page, "LOCALHOST", "a test")
	want(http.StatusOK, page, "127.0.0.2:80", "a test")
	want(http.StatusMisdirectedRequest, page, "other.example", "localhost")
	want(http.StatusForbidden, page+"key?key=other", "", "does not show")
	want(http.StatusNotFound, page+"unlock?key=orders/1", "", "no such page")
}

// TestUIUnlocks: if that was allowed, and it is said.
func TestUIUnlocks(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	lease := redis.hold(t, "k")[0]
	ui := redis.talk(t, "ui", "--allow-unlock", "--listen", "localhost:0")
	b, printed := ui.browse(t)
	b.ask(printed, "", nil)
	form := url.Values{"key": {"k"}, "holder": {`"a test"`}, "typed": {"k"}, "token": {strconv.FormatInt(lease.Token(), 10)}}
	if status, page := b.ask(b.page.String()+"unlock", "", form); status != http.StatusOK || !strings.Contains(page, "was taken from its holder") {
		t.Errorf("got %d and %s, want that it was taken", status, page)
	}
	kit.Eventually(t, "the message", func() bool { return strings.Contains(ui.stderr.String(), "taken=true") })
}

// TestUIEnds: although a browser looks.
func TestUIEnds(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	ui := redis.talk(t, "ui")
	b, printed := ui.browse(t)
	b.ask(printed, "", nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.page.String()+"events?page=locks", nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if line, err := bufio.NewReader(got.Body).ReadString('\n'); err != nil || line != "event: body\n" {
		t.Fatalf("got %q, %v, want an event", line, err)
	}
	ui.end()
	finished(t, ui.done).want(t, 130, context.Canceled.Error())
}
