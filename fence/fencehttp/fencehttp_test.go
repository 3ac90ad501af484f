// SPDX-License-Identifier: Apache-2.0

package fencehttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/fence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newStamp(t *testing.T, key string, token int64) fence.Stamp {
	t.Helper()
	s, err := fence.NewStamp(key, token)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHeader(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]fence.Stamp{
		`"order:42";token="1795360368123456"`: newStamp(t, "order:42", 1795360368123456),
		`"a\"b\\c";token="1"`:                 newStamp(t, `a"b\c`, 1),
		`%"%e4%b8%96%0a%25 %22";token="7"`:    newStamp(t, "世\n% \"", 7),
	} {
		if got, err := Format(want); err != nil || got != value {
			t.Errorf("%v: got %s, %v, want %s", want, got, err, value)
		}
		if got, err := Parse(http.Header{Header: {value}}); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", value, got, err, want)
		}
	}
	if got, err := Parse(http.Header{Header: {`  "k"; other; token="7";more=1.5 `}}); err != nil || got != newStamp(t, "k", 7) {
		t.Errorf("other parameters: got %v, %v, want k and 7", got, err)
	}
	if _, err := Format(fence.Stamp{}); !errors.Is(err, fence.ErrInvalidKey) {
		t.Errorf("no stamp: got %v, want ErrInvalidKey", err)
	}
}

func TestMalformedHeaders(t *testing.T) {
	t.Parallel()
	for _, values := range [][]string{
		{""},
		{`"k"`},
		{`"k";token`},
		{`"k";token=7`}, // ends at 15 digits
		{`"k";token="0"`},
		{`"k";token="-7"`},
		{`"k";token="+7"`},
		{`"k";token="07"`},
		{`"k";token="9223372036854775808"`},
		{`"";token="7"`},
		{`k;token="7"`},
		{`42;token="7"`},
		{`"k";token="7", "l";token="8"`},
		{`"k";token="7"`, `"k";token="7"`},
		{`"` + strings.Repeat("k", 513) + `";token="7"`},
		{`"k";token="7"` + strings.Repeat(" ", maxHeaderLen)},
		{`%"%ff";token="7"`},
		{"\"k\";token=\"7\"\x00"},
	} {
		if got, err := Parse(http.Header{Header: values}); !errors.Is(err, ErrMalformed) || got != (fence.Stamp{}) {
			t.Errorf("%q: got %v, %v, want ErrMalformed", values, got, err)
		}
	}
	if _, err := Parse(http.Header{}); !errors.Is(err, ErrMissing) {
		t.Errorf("no header: got %v, want ErrMissing", err)
	}
}

// FuzzParse: what is parsed is a stamp that leads back to itself, and all other headers are errors.
func FuzzParse(f *testing.F) {
	f.Add(`"order:42";token="1795360368123456"`)
	f.Add(`%"%e4%b8%96";token="7";x`)
	f.Add(`"k";token="07"`)
	f.Add(`"k"; token="7", "l"`)
	f.Add(`%"%`)
	f.Fuzz(func(t *testing.T, value string) {
		stamp, err := Parse(http.Header{Header: {value}})
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%q: got %v, want ErrMalformed", value, err)
			}
			return
		}
		again, err := Format(stamp)
		if err != nil {
			t.Fatalf("%q: %v can't be sent: %v", value, stamp, err)
		}
		if got, err := Parse(http.Header{Header: {again}}); err != nil || got != stamp {
			t.Errorf("%q: got %v, %v by %s, want %v", value, got, err, again, stamp)
		}
	})
}

// FuzzFormat: each key that a lock can have comes through.
func FuzzFormat(f *testing.F) {
	f.Add("order:42", int64(1))
	f.Add("\x00\"\\%世", int64(1<<63-1))
	f.Add(strings.Repeat("世", 170), int64(7))
	f.Fuzz(func(t *testing.T, key string, token int64) {
		stamp, err := fence.NewStamp(key, token)
		if err != nil {
			return
		}
		value, err := Format(stamp)
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		if got, err := Parse(http.Header{Header: {value}}); err != nil || got != stamp {
			t.Errorf("%q: got %v, %v by %s", key, got, err, value)
		}
	})
}

// answer serves a request that has these headers, and returns the status, and what the handler saw.
func answer(t *testing.T, headers ...string) (*http.Response, fence.Holder) {
	t.Helper()
	var seen fence.Holder
	h := Require(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = Holder(r.Context()) }))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	for _, value := range headers {
		r.Header.Add(Header, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), seen
}

func TestRequire(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		headers []string
		status  int
		want    fence.Holder
	}{
		"a token":   {[]string{`"k";token="7"`}, http.StatusOK, newStamp(t, "k", 7)},
		"none":      {nil, http.StatusPreconditionRequired, nil},
		"malformed": {[]string{"x"}, http.StatusBadRequest, nil},
		"two":       {[]string{`"k";token="7"`, `"k";token="8"`}, http.StatusBadRequest, nil},
	} {
		r, seen := answer(t, c.headers...)
		defer r.Body.Close()
		if r.StatusCode != c.status || seen != c.want {
			t.Errorf("%s: got %d and %v, want %d and %v", name, r.StatusCode, seen, c.status, c.want)
		}
		if c.status != http.StatusOK && r.Header.Get("Content-Type") != problemMedia {
			t.Errorf("%s: got a body of %s, want a problem", name, r.Header.Get("Content-Type"))
		}
	}
}

// Require is no fence: it lets in what is stale, and a handler without a fence writes it.
func TestRequireComparesNothing(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"7", "6"} {
		r, seen := answer(t, `"k";token="`+token+`"`)
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK || seen == nil {
			t.Errorf("token %s: got %d, want it let in", token, r.StatusCode)
		}
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	stale := &fence.StaleError{Key: "k", Resource: "r", Token: 1 << 62, Newest: 1<<62 + 1}
	for _, c := range []struct {
		err    error
		status int
		want   error // at the client
	}{
		{errors.Join(io.EOF, stale), http.StatusPreconditionFailed, fence.ErrStale},
		{ErrMissing, http.StatusPreconditionRequired, ErrMissing},
		{ErrMalformed, http.StatusBadRequest, nil},
	} {
		w := httptest.NewRecorder()
		if !Refuse(w, c.err) {
			t.Errorf("%v: got no answer", c.err)
		}
		r := w.Result()
		defer r.Body.Close()
		err := Err(r)
		var got *fence.StaleError
		if r.StatusCode != c.status || !errors.Is(err, c.want) || errors.As(err, &got) && *got != *stale {
			t.Errorf("%v: got %d and %v, want %d and %v", c.err, r.StatusCode, err, c.status, c.want)
		}
	}
	for _, err := range []error{nil, io.EOF, fence.ErrInvalidToken} {
		w := httptest.NewRecorder()
		if Refuse(w, err) || w.Body.Len() > 0 {
			t.Errorf("%v: got an answer, want none", err)
		}
	}
}

// A 412 of an ETag, or whatever else, is no stale token. A problem of ours is one in any spelling.
func TestErrKnowsItsAnswers(t *testing.T) {
	t.Parallel()
	const stale = `{"type":"` + problemType + `","key":"k","token":"1","newest":"2"}`
	for name, c := range map[string]struct {
		status      int
		media, body string
		want        string
	}{
		"with a charset":       {http.StatusPreconditionFailed, "Application/problem+json; charset=utf-8", stale, "stale"},
		"with a bad charset":   {http.StatusPreconditionFailed, "application/problem+json; charset=", stale, "stale"},
		"another precondition": {http.StatusPreconditionFailed, "text/plain", "etag", ""},
		"another problem":      {http.StatusPreconditionFailed, problemMedia, `{"type":"about:blank"}`, ""},
		"cut short":            {http.StatusPreconditionFailed, problemMedia, `{"type":"`, "unexpected EOF"},
		"no precondition":      {http.StatusConflict, problemMedia, `{"type":"` + problemType + `"}`, ""},
		"all is well":          {http.StatusOK, "", "", ""},
	} {
		r := &http.Response{StatusCode: c.status, Header: http.Header{"Content-Type": {c.media}}, Body: io.NopCloser(strings.NewReader(c.body))}
		if err := Err(r); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// A sent is a RoundTripper that remembers the last request.
type sent struct{ last *http.Request }

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.last = r
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// An ended holder is as a lease that is lost.
type ended struct{ fence.Stamp }

func (ended) Err() error { return io.ErrClosedPipe }

func TestTransport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		holder fence.Holder
		url    string
		value  string
		want   error
	}{
		"a holder":                 {newStamp(t, "k", 7), "http://shop:81/x", `"k";token="7"`, nil},
		"no holder":                {nil, "http://shop:81/x", "", nil},
		"no holder, elsewhere":     {nil, "http://elsewhere/x", "", nil},
		"elsewhere":                {newStamp(t, "k", 7), "http://elsewhere/x", "", ErrHost},
		"another port":             {newStamp(t, "k", 7), "http://shop/x", "", ErrHost},
		"a lease that has ended":   {ended{newStamp(t, "k", 7)}, "http://shop:81/x", "", io.ErrClosedPipe},
		"a lease without a number": {fence.Stamp{}, "http://shop:81/x", "", fence.ErrInvalidKey},
	} {
		base, ctx := new(sent), t.Context()
		if c.holder != nil {
			ctx = NewContext(ctx, c.holder)
		}
		body := &closed{Reader: strings.NewReader("body")}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, body)
		if err != nil {
			t.Fatal(err)
		}
		transport := &Transport{Base: base, Hosts: []string{"shop:81"}}
		answer, err := transport.RoundTrip(r)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if c.want != nil {
			if base.last != nil || !body.done {
				t.Errorf("%s: sent %v, closed the body %t; want nothing sent", name, base.last, body.done)
			}
			continue
		}
		defer answer.Body.Close()
		if got := base.last.Header.Get(Header); got != c.value {
			t.Errorf("%s: got the header %q, want %q", name, got, c.value)
		}
		if r.Header.Get(Header) != "" {
			t.Errorf("%s: the caller's request was changed", name)
		}
	}
}

// A closed body says that it is.
type closed struct {
	io.Reader
	done bool
}

func (c *closed) Close() error {
	c.done = true
	return nil
}

// A redirection to another host takes no token along.
func TestTransportFollowsNoRedirectionElsewhere(t *testing.T) {
	t.Parallel()
	var saw string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { saw = r.Header.Get(Header) }))
	defer elsewhere.Close()
	service := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer service.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: &Transport{Base: base, Hosts: []string{strings.TrimPrefix(service.URL, "http://")}}}
	r, err := http.NewRequestWithContext(NewContext(t.Context(), newStamp(t, "k", 7)), http.MethodPost, service.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err == nil {
		answer.Body.Close()
	}
	if !errors.Is(err, ErrHost) || saw != "" {
		t.Errorf("got %v, sent %q, want ErrHost", err, saw)
	}
}

func TestHolderOfNoContext(t *testing.T) {
	t.Parallel()
	if h := Holder(context.Background()); h != nil {
		t.Errorf("got %v, want nil", h)
	}
}
