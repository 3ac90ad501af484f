// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
)

// play sends requests, and prints their answers. The operator is another process.
func play(ctx context.Context, s *service, operator *asynclock.Client) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // until Close
	defer server.Close()
	c := client{"http://" + listener.Addr().String() + "/invoices"}
	show := func(what, answer string) { fmt.Printf("%-26s %s\n", what+":", answer) }

	s.render = func(context.Context) error { return nil }
	show("a new invoice", c.post(ctx, "a", "120"))
	show("the same again", c.post(ctx, "a", "120"))
	show("another amount", c.post(ctx, "a", "999"))

	first := make(chan string)
	go func() { first <- c.post(ctx, "b", "80") }()
	both := []string{c.post(ctx, "b", "80"), <-first}
	slices.Sort(both)
	show("two at a time", strings.Join(both, " and "))

	lease, err := operator.Lock(ctx, "invoice:c")
	if err != nil {
		return err
	}
	s.wait = 0
	show("the key is held", c.post(ctx, "c", "50"))
	if err := lease.Unlock(ctx); err != nil {
		return err
	}
	return sleep(ctx, s, operator, c, show)
}

// sleep lets a request lose its lease at work, and write after the next one.
func sleep(ctx context.Context, s *service, operator *asynclock.Client, c client, show func(what, answer string)) error {
	atWork := make(chan struct{})
	s.render = func(ctx context.Context) error {
		close(atWork)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	first := make(chan string)
	go func() { first <- c.post(ctx, "d", "70") }()
	<-atWork
	info, err := operator.Inspect(ctx, "invoice:d")
	if err != nil {
		return err
	}
	if _, err := operator.ForceUnlock(ctx, "invoice:d", info.Token); err != nil {
		return err
	}
	show("the lease is lost", <-first)
	s.render = func(context.Context) error { return nil }
	show("the client repeats it", c.post(ctx, "d", "70"))

	sleeper, err := fence.NewStamp("invoice:d", info.Token) // as if the first request had noticed nothing
	if err != nil {
		return err
	}
	err = s.insert(ctx, sleeper, "d", 70)
	show("the first one writes late", fmt.Sprint("refused: ", errors.Is(err, fence.ErrStale)))
	var sum string
	err = s.db.QueryRowContext(ctx, "SELECT sum(amount) FROM invoices").Scan(&sum)
	show("sum of all invoices", sum)
	return err
}

// A client sends requests to the service at its URL.
type client struct{ url string }

// post returns the status, or the error.
func (c client) post(ctx context.Context, name, amount string) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(url.Values{"amount": {amount}}.Encode()))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Idempotency-Key", name)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	return answer.Status
}
