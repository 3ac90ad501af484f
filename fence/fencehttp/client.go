// SPDX-License-Identifier: Apache-2.0

package fencehttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/asynclock/asynclock-go/fence"
)

// A Transport sends the token of the [Holder] in a request's context. A request without a holder goes
// out as it is. It is safe for concurrent use.
type Transport struct {
	// Base sends the requests. Nil: [http.DefaultTransport].
	Base http.RoundTripper
	// Hosts are those that may see keys and tokens, as in a URL: with the port, if that has one. A
	// request with a holder to any other host is refused with [ErrHost], also after a redirection.
	Hosts []string
}

// ErrHost means that a request with a holder is for a host that the [Transport] does not name. It was
// not sent.
var ErrHost = errors.New("fencehttp: not one of the hosts that may see fencing tokens")

// RoundTrip implements [http.RoundTripper]. If the holder is a lease that has ended, it sends nothing and
// returns the lease's error. That saves a request and protects nothing: the fence at the service does.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	h := Holder(r.Context())
	if h == nil {
		return t.base().RoundTrip(r)
	}
	value, err := t.header(r, h)
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper has to
		}
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set(Header, value)
	return t.base().RoundTrip(r)
}

// header returns the header of a request that may be sent.
func (t *Transport) header(r *http.Request, h fence.Holder) (string, error) {
	if !slices.Contains(t.Hosts, r.URL.Host) {
		return "", fmt.Errorf("%w: %q", ErrHost, r.URL.Host)
	}
	if lease, is := h.(interface{ Err() error }); is && lease.Err() != nil {
		return "", lease.Err()
	}
	return Format(h)
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

// maxProblemLen bounds what Err reads of an answer.
const maxProblemLen = 16 << 10

// Err returns what an answer says of the request's token: a [*fence.StaleError] for the 412 of [Refuse],
// [ErrMissing] for 428, and nil for all other answers, whose body it leaves unread. The body stays the
// caller's to close.
func Err(r *http.Response) error {
	switch r.StatusCode {
	case http.StatusPreconditionRequired:
		return ErrMissing
	case http.StatusPreconditionFailed:
	default:
		return nil
	}
	// A server or a proxy may have added a charset. An error is about such a parameter only if there is a type.
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media != problemMedia {
		return nil // of another precondition
	}
	var p problem
	if err := json.NewDecoder(io.LimitReader(r.Body, maxProblemLen)).Decode(&p); err != nil {
		return fmt.Errorf("fencehttp: the body of a 412: %w", err)
	}
	if p.Type != problemType {
		return nil
	}
	return &fence.StaleError{Key: p.Key, Resource: p.Resource, Token: p.Token, Newest: p.Newest}
}
