// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"iter"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

const (
	// listPage is how many keys one call of List brings.
	listPage = 500
	// queueShown is how many waiters Inspect describes.
	queueShown = 10
	// emptyPages is how many pages in a row may be full of keys that were gone when the
	// routine looked closer. They are asked for again, from the last key that has a name.
	emptyPages = 3
)

// Inspect: of a holder in Java only the first digits of its repository's id are
// known.
func (s *session) Inspect(ctx context.Context, key string) (store.Info, error) {
	a, err := s.ask(ctx, "INSPECT", key)
	if err != nil {
		return store.Info{}, err
	}
	info := a.info(key)
	for _, w := range a.Queue {
		holder, _ := decodeName(w.Holder)
		info.Queue = append(info.Queue, store.WaiterInfo{Holder: holder, Age: time.Duration(w.Age) * time.Microsecond})
	}
	return info, nil
}

// Force takes the key from Java, too, where unlock then throws a
// ConcurrentModificationException. Holders in Go are told where there are messages,
// and notice at their next renewal where not.
func (s *session) Force(ctx context.Context, key string) (bool, error) {
	a, err := s.ask(ctx, "FORCE", key)
	return a.Held, err
}

// ask calls a routine for one key.
func (s *session) ask(ctx context.Context, routine, key string) (answer, error) {
	if err := s.usable(); err != nil {
		return answer{}, err
	}
	it, err := s.store.newItem(key)
	if err != nil {
		return answer{}, err
	}
	it.Size = queueShown
	answers, err := s.store.call(ctx, routine, []item{it})
	if err == nil && len(answers) != 1 {
		err = errReply
	}
	if err != nil {
		return answer{}, err
	}
	return answers[0], nil
}

func (a answer) info(key string) store.Info {
	info := store.Info{Key: key, Held: a.Held, Waiters: a.Waiters}
	if a.Held {
		info.Holder, info.Token = a.holder(), a.Token
		info.Remaining = max(time.Duration(a.Left)*time.Microsecond, 0)
	}
	return info
}

// List reads page after page. In Java's table keys are hashed: those that no Go
// client has used for a day have no name, and are left out.
func (s *session) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		empty := 0 // pages in a row that name no key
		for page := (item{Prefix: keyName(prefix), Size: listPage}); ; {
			err := s.usable()
			var answers []answer
			if err == nil {
				answers, err = s.store.call(ctx, "LIST", []item{page})
			}
			if err != nil {
				yield(store.Info{}, err)
				return
			}
			empty++
			for _, a := range answers {
				key, ok := keyOf(a.Name)
				if ok && (a.Held || a.Waiters > 0) && !yield(a.info(key), nil) {
					return
				}
				if a.Key != "" { // not gone between two looks of the routine
					page.After, empty = a.Key, 0
				}
			}
			if len(answers) < listPage {
				return
			}
			if empty == emptyPages {
				yield(store.Info{}, errReply)
				return
			}
		}
	}
}
