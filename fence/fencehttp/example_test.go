// SPDX-License-Identifier: Apache-2.0

package fencehttp_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fencehttp"
)

// A service has its state in memory. Requests of a holder that overslept are refused.
func Example() {
	var gate fence.Gate // for rows of a database: fencesql, in the handler's transaction
	state := "new"
	save := func(w http.ResponseWriter, r *http.Request) {
		err := gate.Do(r.Context(), fencehttp.Holder(r.Context()), func() error {
			state = r.FormValue("state")
			return nil
		})
		if !fencehttp.Refuse(w, err) && err != nil {
			http.Error(w, "try again", http.StatusServiceUnavailable)
		}
	}
	service := httptest.NewServer(fencehttp.Require(http.HandlerFunc(save)))
	defer service.Close()

	client := http.Client{Transport: &fencehttp.Transport{Hosts: []string{strings.TrimPrefix(service.URL, "http://")}}}
	defer client.CloseIdleConnections()
	send := func(lease fence.Holder, state string) error { // a lease is a Holder
		ctx := fencehttp.NewContext(context.Background(), lease)
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, service.URL+"?state="+state, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		return fencehttp.Err(answer) // nil, or ErrStale
	}

	sleeper, err := fence.NewStamp("order:42", 1001)
	if err != nil {
		log.Fatal(err)
	}
	next, err := fence.NewStamp("order:42", 1002)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(send(next, "paid"))
	fmt.Println(send(sleeper, "cancelled"))
	fmt.Println(state)
	// Output:
	// <nil>
	// fence: stale fencing token: token 1001 of "order:42" is smaller than 1002
	// paid
}
