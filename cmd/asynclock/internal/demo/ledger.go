// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// A ledger is a resource that checks fencing tokens: it remembers the largest token it has seen and
// refuses a write with a smaller one. It knows nothing of locks. A database does the same with one
// condition in its UPDATE.
type ledger struct {
	server *http.Server
	url    string

	mu    sync.Mutex
	token int64 // the largest seen
}

func openLedger() (*ledger, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &ledger{url: "http://" + listener.Addr().String()}
	l.server = &http.Server{Handler: l}
	go func() { _ = l.server.Serve(listener) }() // until close
	return l, nil
}

func (l *ledger) close() { _ = l.server.Close() } // its connections are those of our own workers

// ServeHTTP takes one write.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, err := strconv.ParseInt(r.FormValue("token"), 10, 64)
	if err != nil {
		http.Error(w, "no token", http.StatusBadRequest)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if token < l.token {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprintf(w, "token %d is older than %d", token, l.token)
		return
	}
	l.token = token
}

// writeToLedger writes to the ledger at url. It reports whether the ledger accepted the write, and
// otherwise the reason.
func writeToLedger(ctx context.Context, url string, token int64) (accepted bool, reason string, err error) {
	target := url + "?token=" + strconv.FormatInt(token, 10)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, nil)
	if err != nil {
		return false, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, "", err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return false, "", err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return true, "", nil
	case http.StatusConflict:
		return false, string(answer), nil
	default:
		return false, "", fmt.Errorf("ledger: %s: %s", response.Status, answer)
	}
}
