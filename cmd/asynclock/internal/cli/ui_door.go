// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

const (
	doorCookie = "asynclock-ui"
	doorToken  = "token"
)

// A door decides who sees the page: a browser that has opened the address with the token once. It then has a cookie
// instead.
//
// Browsers send a cookie to each port of a host. So the page is below a random path, which is the cookie's, too: another
// server on this machine does not see it.
type door struct{ path, token, cookie string }

func newDoor() *door { return &door{"/" + rand.Text() + "/", rand.Text(), rand.Text()} }

// address is where the page is, without the host.
func (d *door) address() string { return d.path + "?" + doorToken + "=" + d.token }

// isOpen reports whether the request is from such a browser. Its host was looked at before.
func (d *door) isOpen(r *http.Request) bool {
	cookie, err := r.Cookie(doorCookie)
	return err == nil && isSame(cookie.Value, d.cookie)
}

// before returns a handler that lets browsers in with the token, and leaves all else to the page.
func (d *door) before(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.URL.Query().Get(doorToken)
		switch {
		case !isHere(r.Host): // a name of others, which leads here
			http.Error(w, "This page is at 127.0.0.1, [::1] and localhost.", http.StatusMisdirectedRequest)
		case !strings.HasPrefix(r.URL.Path, d.path):
			http.Error(w, "Open the address that asynclock ui has printed.", http.StatusForbidden)
		case isSame(token, d.token):
			// Lax, because with Strict a browser that follows a link here does not send it yet.
			http.SetCookie(w, &http.Cookie{Name: doorCookie, Value: d.cookie, Path: d.path, HttpOnly: true, SameSite: http.SameSiteLaxMode})
			w.Header().Set("Referrer-Policy", "no-referrer")
			http.Redirect(w, r, d.path, http.StatusSeeOther)
		default:
			page.ServeHTTP(w, r)
		}
	})
}

func isSame(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// isHere reports whether a Host header names this machine as only a program on it would, or one behind a forwarded port.
// Otherwise a name of another site, which leads to this machine, would let that site's scripts read the page.
func isHere(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return isLoopback(name)
}

// isLoopback reports whether a host is this machine, and can't be another one. No other site can make a browser take an
// address for its own.
func isLoopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}
