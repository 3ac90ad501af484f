// SPDX-License-Identifier: Apache-2.0

package asynclockui

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/board"
	"github.com/asynclock/asynclock-go/internal/plain"
)

// An unlockView is what the template unlock shows.
type unlockView struct {
	Shown   string   // the key, as it is shown
	Holder  string   // as Go quotes it: browsers change some characters in forms
	Holders []string // the first of those who have it, as they are shown
	Sharing string   // how many have it
	Token   int64
	Held    bool
	Result  string // what has happened; empty: nothing was tried
	Address string // of the key's page
	Form    string // the address of the form
}

func newUnlockView(key string) unlockView {
	return unlockView{Shown: plain.Text(key), Address: addressOf("key", key), Form: addressOf("unlock", key)}
}

func (v *unlockView) add(info *asynclock.Info) {
	v.Held, v.Token, v.Holder = true, info.Token, strconv.Quote(info.Holder)
	v.Holders = []string{plain.Text(info.Holder)}
	if info.Mode != asynclock.Exclusive && len(info.Holders) > 0 {
		v.Sharing, v.Holders = plain.Text(info.Holder), nil
		for _, h := range info.Holders {
			v.Holders = append(v.Holders, plain.Text(h.Holder))
		}
	}
}

// showUnlock asks whether a key is to be taken from the holder that it has now.
func (p *page) showUnlock(w http.ResponseWriter, r *http.Request) {
	key, ok := p.key(w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	v := newUnlockView(key)
	info, err := p.locks.Inspect(ctx, key)
	switch {
	case err != nil:
		v.Result = "The key can't be seen: " + problem(err) + "."
	case !info.Held:
		v.Result = "Nobody holds the key."
	default:
		v.add(&info)
	}
	p.show(w, http.StatusOK, "unlock", v)
}

// unlock takes a key from the holder that the form names, and from no other.
func (p *page) unlock(w http.ResponseWriter, r *http.Request) {
	key, ok := p.key(w, r)
	if !ok {
		return
	}
	v := newUnlockView(key)
	token, err := strconv.ParseInt(r.PostFormValue("token"), 10, 64)
	holder, unquoted := strconv.Unquote(r.PostFormValue("holder"))
	switch {
	case err != nil || unquoted != nil || token < 0:
		p.fail(w, http.StatusBadRequest, "The form names no holder.")
		return
	case !board.IsTyped(r.PostFormValue("typed"), key):
		v.Result = "That is another key. Nothing was taken."
		p.show(w, http.StatusBadRequest, "unlock", v)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), askTime) // whoever has sent it may go
	defer cancel()
	shown := asynclock.Info{Key: key, Token: token, Holder: holder}
	taken, effect, err := board.Take(ctx, p.locks, shown)
	p.log().LogAttrs(ctx, slog.LevelWarn, "a key was to be taken from its holder, by the page", slog.String("key", key),
		slog.String("holder", shown.Holder), slog.Int64("token", token), slog.String("from", r.RemoteAddr),
		slog.Bool("taken", taken), slog.String("error", problem(err)))
	switch {
	case err != nil:
		v.Result = "There was an error, and " + effect + ": " + problem(err) + "."
	case taken:
		v.Result = "The key was taken from its holder."
	default:
		v.Result = "Nobody held the key."
	}
	p.show(w, http.StatusOK, "unlock", v)
}
