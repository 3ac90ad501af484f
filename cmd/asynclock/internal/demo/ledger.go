// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencehttp"
)

// A ledger is a service behind a fence: it refuses a write with a smaller token than one that it has
// seen. It knows nothing of locks.
type ledger struct {
	server *http.Server
	url    string
	gate   fence.Gate
}

func openLedger() (*ledger, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &ledger{url: "http://" + listener.Addr().String()}
	l.server = &http.Server{Handler: fencehttp.Require(l)}
	go func() { _ = l.server.Serve(listener) }() // until close
	return l, nil
}

func (l *ledger) close() { _ = l.server.Close() } // its connections are those of our own workers

// ServeHTTP takes one write.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := l.gate.Do(r.Context(), fencehttp.Holder(r.Context()), func() error { return nil })
	if !fencehttp.Refuse(w, err) && err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// writeToLedger writes to the ledger at target. It reports whether the ledger accepted the write, and
// otherwise the reason.
func writeToLedger(ctx context.Context, target string, holder fence.Stamp) (accepted bool, reason string, err error) {
	at, err := url.Parse(target)
	if err != nil {
		return false, "", err
	}
	request, err := http.NewRequestWithContext(fencehttp.NewContext(ctx, holder), http.MethodPost, target, nil)
	if err != nil {
		return false, "", err
	}
	client := http.Client{Transport: &fencehttp.Transport{Hosts: []string{at.Host}}}
	response, err := client.Do(request)
	if err != nil {
		return false, "", err
	}
	defer func() { _ = response.Body.Close() }()
	var stale *fence.StaleError
	switch err := fencehttp.Err(response); {
	case errors.As(err, &stale):
		return false, fmt.Sprintf("token %d is older than %d", stale.Token, stale.Newest), nil
	case err != nil:
		return false, "", err
	case response.StatusCode != http.StatusOK:
		return false, "", fmt.Errorf("ledger: %s", response.Status)
	}
	return true, "", nil
}
