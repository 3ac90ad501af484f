// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A Session is the part of a store's session that all stores in databases share.
type Session struct {
	Waiters // the owners that poll

	conn *Conn
	left atomic.Bool
}

// NewSession connects a client, whose waiters poll at the interval. The id must be
// printable ASCII without spaces, of at most 128 bytes.
func NewSession(c *Conn, id string, events func(store.Event), interval time.Duration) (*Session, error) {
	switch {
	case !IsField(id):
		return nil, fmt.Errorf("%w: client id must be printable ASCII without spaces", store.ErrInvalidOption)
	case events == nil:
		return nil, fmt.Errorf("%w: nil events", store.ErrInvalidOption)
	case c.Closed():
		return nil, store.ErrClosed
	}
	return &Session{Waiters: Waiters{interval: interval}, conn: c}, nil
}

// Lane is the same for all keys: all requests go through one pool to one server.
func (s *Session) Lane(string) int { return 0 }

// Leave ends the session, and reports whether it was open.
func (s *Session) Leave() bool { return !s.left.Swap(true) }

// usable returns why no request can be sent any more, or nil.
func (s *Session) usable() error {
	if s.left.Load() || s.conn.Closed() {
		return store.ErrClosed
	}
	return nil
}

const (
	// listPage is how many keys one call of List brings.
	listPage = 500
	// shown is how many waiters, and how many holders, Inspect describes.
	shown = 10
	// emptyPages is how many pages in a row may consist of keys that were gone when the
	// routine looked closer. Such a page is requested again, from the last key that has a
	// name.
	emptyPages = 3
)

// Inspect says who holds a key and who waits for it.
func (s *Session) Inspect(ctx context.Context, key string) (store.Info, error) {
	a, err := s.ask(ctx, "INSPECT", key, func(it *Item) { it.Size = shown })
	if err != nil {
		return store.Info{}, err
	}
	info := s.info(key, a)
	for _, w := range a.Queue {
		holder, _ := DecodeName(w.Holder)
		info.Queue = append(info.Queue, store.WaiterInfo{Holder: holder, Age: span(w.Age)})
	}
	for _, h := range a.Holders {
		holder, _ := DecodeName(h.Holder)
		info.Holders = append(info.Holders, store.HolderInfo{
			Holder: holder, Token: h.Token, Weight: h.Weight, Remaining: span(h.Left),
		})
	}
	return info, nil
}

// Force takes a key from its holder, in the transaction that compares the token. A holder in Java
// has no token.
func (s *Session) Force(ctx context.Context, key string, token int64) (bool, error) {
	a, err := s.ask(ctx, "FORCE", key, func(it *Item) { it.Token = token })
	if err == nil && a.Status == StatusHeld && a.Held {
		err = &store.OtherHolderError{Info: s.info(key, a)}
	}
	if err != nil {
		return false, err
	}
	return a.Held, nil
}

// SetLimit stores the limit in a row of its own, which no sweep deletes. A store without limits
// refuses it.
func (s *Session) SetLimit(ctx context.Context, key string, limit int32) error {
	if err := s.conn.Features.CheckLimit(limit); err != nil {
		return err
	}
	a, err := s.ask(ctx, "LIMIT", key, func(it *Item) { it.Limit = int(limit) })
	if err == nil && a.Status != StatusGranted {
		err = ErrReply
	}
	return err
}

// ask calls a routine for one key.
func (s *Session) ask(ctx context.Context, routine, key string, put func(*Item)) (Answer, error) {
	it, err := s.item(key)
	if err != nil {
		return Answer{}, err
	}
	put(&it)
	r := Do(ctx, s, Routine[Item, asked]{
		Name:   routine,
		Put:    func(it *Item) (Item, error) { return *it, nil },
		Read:   func(_ *Item, a Answer) (asked, error) { return asked{answer: a}, nil },
		Failed: func(err error) asked { return asked{err: err} },
	}, []Item{it})[0]
	return r.answer, r.err
}

// An asked is an answer, or an error.
type asked struct {
	answer Answer
	err    error
}

func (s *Session) info(key string, a Answer) store.Info {
	info := store.Info{Key: key, Held: a.Held, Waiters: a.Waiters, StoredLimit: a.Stored}
	if a.Held {
		info.Holder, info.Token = s.conn.Tables.Holder(a), a.Token
		info.Remaining = max(span(a.Left), 0)
		info.Mode = a.Mode
	}
	if info.Mode == store.Permits {
		info.Used, info.Limit = a.Used, a.Permits
	}
	return info
}

// List reads page after page. Keys without a name are left out.
func (s *Session) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		empty := 0 // pages in a row that name no key
		for page := (Item{Prefix: KeyName(prefix), Size: listPage}); ; {
			answers, err := s.page(ctx, page)
			if err != nil {
				yield(store.Info{}, err)
				return
			}
			after, ok := s.yieldPage(answers, yield)
			if !ok || len(answers) < listPage {
				return
			}
			empty++
			if after != "" { // some were still there when the routine looked closer
				page.After, empty = after, 0
			}
			if empty == emptyPages {
				yield(store.Info{}, ErrReply)
				return
			}
		}
	}
}

// page requests a page of a listing.
func (s *Session) page(ctx context.Context, page Item) ([]Answer, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	return s.conn.Call(ctx, "LIST", []Item{page})
}

// yieldPage yields the keys of a page that are in use. It returns the last key that has a
// name, if any, and whether to go on.
func (s *Session) yieldPage(answers []Answer, yield func(store.Info, error) bool) (last string, goOn bool) {
	for _, a := range answers {
		key, ok := KeyOf(a.Name)
		if ok && (a.Held || a.Waiters > 0) && !yield(s.info(key, a), nil) {
			return last, false
		}
		if a.Key != "" { // it was still there when the routine looked closer
			last = a.Key
		}
	}
	return last, true
}
