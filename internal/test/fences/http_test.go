// SPDX-License-Identifier: Apache-2.0

package fences

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencehttp"
)

// A service in the test's process has its state in memory, behind a Gate, or in a database, behind
// fencesql.
func init() {
	kinds["fencehttp, Gate"] = kind{open: openHTTP, prepare: func(t *testing.T) string {
		t.Helper()
		var gate fence.Gate
		var state string
		return serve(t, resource{
			write: func(ctx context.Context, h fence.Holder, value string) error {
				return gate.Do(ctx, h, func() error { state = value; return nil })
			},
			read: func(context.Context) (string, error) { return state, nil },
		})
	}}
	kinds["fencehttp, fencesql"] = kind{open: openHTTP, prepare: func(t *testing.T) string {
		t.Helper()
		d := newDatabase(t, dialects["sqlite"], inFile(t))
		return serve(t, resource{write: d.write, read: d.value})
	}}
}

// serve offers a resource over HTTP: to write by POST, behind Require, and to read by GET.
func serve(t *testing.T, r resource) (url string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("POST /", fencehttp.Require(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		err := r.write(q.Context(), fencehttp.Holder(q.Context()), q.FormValue("value"))
		if !fencehttp.Refuse(w, err) && err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, q *http.Request) {
		value, err := r.read(q.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, value)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// A lateHolder hides that its lease has ended, as a request does that was on its way already: the
// Transport would not send it.
type lateHolder struct{ fence.Holder }

func openHTTP(_ context.Context, place string) (resource, error) {
	at, err := url.Parse(place)
	if err != nil {
		return resource{}, err
	}
	base := &http.Transport{}
	client := &http.Client{Transport: &fencehttp.Transport{Base: base, Hosts: []string{at.Host}}}
	ask := func(ctx context.Context, method, value string) (string, error) {
		q, err := http.NewRequestWithContext(ctx, method, place+"/?value="+url.QueryEscape(value), nil)
		if err != nil {
			return "", err
		}
		answer, err := client.Do(q)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		if err := fencehttp.Err(answer); err != nil {
			return "", err
		}
		body, err := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusOK {
			return "", fmt.Errorf("%s: %s", answer.Status, body)
		}
		return string(body), err
	}
	return resource{
		write: func(ctx context.Context, h fence.Holder, value string) error {
			_, err := ask(fencehttp.NewContext(ctx, lateHolder{h}), http.MethodPost, value)
			return err
		},
		read:  func(ctx context.Context) (string, error) { return ask(ctx, http.MethodGet, "") },
		close: base.CloseIdleConnections,
	}, nil
}
