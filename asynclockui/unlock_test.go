// SPDX-License-Identifier: Apache-2.0

package asynclockui_test

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclockui"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func memory(t *testing.T) store.Store {
	t.Helper()
	return memstore.New()
}

// typed is the form that takes a key from the holder of a lease, with what its user has typed.
func typed(lease *asynclock.Lease, text string) url.Values {
	return url.Values{"key": {lease.Key()}, "holder": {strconv.Quote("theirs")}, "token": {strconv.FormatInt(lease.Token(), 10)}, "typed": {text}}
}

// TestUnlock: the key is taken from the holder that was shown, once it was typed.
func TestUnlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, asynclockui.WithForceUnlock())
		key := "k\x01"
		lease := w.lock(w.theirs, key)
		w.has(w.get(http.StatusOK, "unlock?key=k%01"), "theirs holds it", `name="token" value="`+strconv.FormatInt(lease.Token(), 10)+`"`, `method="post"`)
		for _, text := range []string{"", "k", `k\x01`, "k\x02"} {
			w.has(w.post(http.StatusBadRequest, "unlock", typed(lease, text)), "another key", "Nothing was taken")
		}
		for _, token := range []string{"", "-1", "x"} {
			form := typed(lease, key)
			form.Set("token", token)
			w.post(http.StatusBadRequest, "unlock", form)
		}
		if w.post(http.StatusBadRequest, "unlock", url.Values{"typed": {""}}); !lease.Valid(0) {
			t.Fatal("the lease was lost")
		}
		w.has(w.post(http.StatusOK, "unlock", typed(lease, `"k\x01"`)), "was taken from its holder")
		time.Sleep(time.Second)
		if err := lease.Err(); !errors.Is(err, asynclock.ErrForced) {
			t.Errorf("got %v, want ErrForced", err)
		}
		next := w.lock(w.theirs, key)
		w.has(w.post(http.StatusOK, "unlock", typed(lease, key)), "There was an error, and nothing was taken")
		if !next.Valid(0) {
			t.Error("the next lease was lost")
		}
		if err := next.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		w.has(w.post(http.StatusOK, "unlock", typed(next, key)), "Nobody held the key")
		w.has(w.get(http.StatusOK, "unlock?key=k%01"), "Nobody holds the key", "!<form")
		log := w.log.String()
		w.has(log, `key="k\x01" holder=theirs`, "from=192.0.2.1:1234 taken=true", "taken=false")
		if n := strings.Count(log, "\n"); n != 3 {
			t.Errorf("got %d lines in the log, want one of each attempt with the right key: 3", n)
		}
	})
}

// TestUnlockOfManyHolders: the page says that all of them lose the key.
func TestUnlockOfManyHolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asynclockui.WithForceUnlock())
	for _, c := range []*asynclock.Client{w.ours, w.theirs} {
		if _, err := c.RLock(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
	}
	w.has(w.get(http.StatusOK, "unlock?key=k"), "all of them lose it", "<li>ours</li>", "<li>theirs</li>", "from all of them")
}

// TestFormsOfAnyKey: a browser changes line feeds in a form, and so the key is in the form's address.
func TestFormsOfAnyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.page = w.handler(asynclockui.WithForceUnlock(), asynclockui.WithChecks(w.store))
	lease := w.lock(w.theirs, "a\nb")
	w.has(w.get(http.StatusOK, "unlock?key=a%0Ab"), `action="unlock?key=a%0Ab"`, `name="holder" value="&#34;theirs&#34;"`)
	w.has(w.get(http.StatusOK, "checks?key=a%0Ab"), `action="checks?key=a%0Ab"`)
	form := typed(lease, `"a\nb"`)
	form.Del("key")
	w.has(w.post(http.StatusOK, "unlock?key=a%0Ab", form), "was taken from its holder")
}
