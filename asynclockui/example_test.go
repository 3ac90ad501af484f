// SPDX-License-Identifier: Apache-2.0

package asynclockui_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclockui"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// The page on the admin pages of a service, for those with a session of their own.
func ExampleHandler() {
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(context.Background())
	isAdmin := func(r *http.Request) bool { _, err := r.Cookie("session"); return err == nil }
	page, err := asynclockui.Handler(locks, isAdmin)
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/admin/locks/", page)
	server := httptest.NewServer(mux)
	defer server.Close()

	lease, err := locks.Lock(context.Background(), "orders/42")
	if err != nil {
		panic(err)
	}
	defer lease.Unlock(context.Background())
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL+"/admin/locks/", nil)
	if err != nil {
		panic(err)
	}
	for range 2 {
		response, err := server.Client().Do(request)
		if err != nil {
			panic(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		fmt.Println(response.Status, strings.Contains(string(text), "orders/42"))
		request.AddCookie(&http.Cookie{Name: "session", Value: "secret"})
	}
	// Output:
	// 403 Forbidden false
	// 200 OK true
}
