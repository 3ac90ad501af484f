// SPDX-License-Identifier: Apache-2.0

package fencehttp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/asynclock/asynclock-go/fence"
)

// A holderKey is that of the holder in a context.
type holderKey struct{}

// NewContext returns a context for requests on behalf of a holder, which is usually a lease. The
// [Transport] sends its token.
func NewContext(ctx context.Context, h fence.Holder) context.Context {
	return context.WithValue(ctx, holderKey{}, h)
}

// Holder returns the holder of [NewContext], or, in a handler behind [Require], the one that the request
// is on behalf of. It returns nil, which every fence refuses, if there is none.
func Holder(ctx context.Context) fence.Holder {
	h, _ := ctx.Value(holderKey{}).(fence.Holder)
	return h
}

// Require lets in requests that have a token, and answers 428 or 400 to others. It does not compare the
// token with any other: next has to show [Holder] to a fence in the step that writes.
func Require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stamp, err := Parse(r.Header)
		if Refuse(w, err) {
			return
		}
		next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), stamp)))
	})
}

// problemType names the answer to a stale token, as RFC 9457 has it.
const problemType = "https://pkg.go.dev/github.com/asynclock/asynclock-go/fence#StaleError"

// A problem is the body of an answer of [Refuse]. Tokens are text: not every JSON parser has 64 bits.
type problem struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Key      string `json:"key,omitempty"`
	Resource string `json:"resource,omitempty"`
	Token    int64  `json:"token,string,omitempty"`
	Newest   int64  `json:"newest,string,omitempty"`
}

// Refuse answers a request if err says that its token is stale (412 Precondition Failed), missing (428
// Precondition Required) or malformed (400 Bad Request), and reports whether it did. Every other error,
// and nil, is left to the caller. The body is a problem (RFC 9457); for a stale token it has the key and
// both tokens.
func Refuse(w http.ResponseWriter, err error) bool {
	p := problem{Type: "about:blank"}
	var stale *fence.StaleError
	switch {
	case errors.As(err, &stale):
		p = problem{
			Type: problemType, Title: "stale fencing token", Status: http.StatusPreconditionFailed,
			Key: stale.Key, Resource: stale.Resource, Token: stale.Token, Newest: stale.Newest,
		}
	case errors.Is(err, ErrMissing):
		p.Title, p.Status = "the header "+Header+" is missing", http.StatusPreconditionRequired
	case errors.Is(err, ErrMalformed):
		p.Title, p.Status = "the header "+Header+" is malformed", http.StatusBadRequest
	default:
		return false
	}
	body, err := json.Marshal(p)
	if err != nil { // it has nothing that could fail
		body = nil
	}
	w.Header().Set("Content-Type", problemMedia)
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // a client that has gone needs no answer
	return true
}

const problemMedia = "application/problem+json"
