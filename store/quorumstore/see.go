// SPDX-License-Identifier: Apache-2.0

package quorumstore

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

const (
	// seeLimit is how long a look at a key may take.
	seeLimit = time.Second
	// forces is how often Force looks whether the holder has kept a vote.
	forces = 4
)

// see asks all nodes what they have of a key. A majority answers, or there is an error.
func (s *session) see(ctx context.Context, key string) (map[int]store.Info, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	type answer struct {
		store.Info
		error
	}
	limit, cancel := context.WithTimeout(ctx, seeLimit+s.store.slack)
	defer cancel()
	seen := make(map[int]store.Info)
	var failed error
	err := gather(ctx, s, s.present(s.store.order(key)), func(i int) answer {
		info, err := s.nodes[i].Inspect(limit, key)
		return answer{info, err}
	}, func(i int, a answer) progress {
		if a.error != nil {
			failed = a.error
			return undecided
		}
		seen[i] = a.Info
		if len(seen) >= s.store.majority() {
			return allWanted // the largest token is that of the lease
		}
		return undecided
	})
	switch {
	case err != nil:
		return nil, err
	case len(seen) >= s.store.majority():
		return seen, nil
	case failed != nil && !abstains(failed):
		return nil, failed
	}
	return nil, unreachable(failed)
}

// claimOf names the claim that a node shows.
func claimOf(one store.Info) string {
	m, _ := unmark(one.Holder)
	return m.claim
}

// sum makes one description of what nodes have, and names the claim that has the key. That is one with a majority, as far
// as can be known, or otherwise the one that has the door.
func (s *session) sum(key string, seen map[int]store.Info) (info store.Info, holder string) {
	votes := make(map[string][]store.Info)
	for _, one := range seen {
		if one.Held {
			votes[claimOf(one)] = append(votes[claimOf(one)], one)
		}
	}
	info.Key = key
	door := -1
	for _, i := range s.store.order(key) {
		if one, ok := seen[i]; ok {
			if door < 0 {
				door = i
			}
			info.StoredLimit = max(info.StoredLimit, one.StoredLimit)
		}
	}
	at := seen[door]
	info.Waiters, info.Queue = at.Waiters, at.Queue
	for n := range info.Queue {
		_, info.Queue[n].Holder = unmark(info.Queue[n].Holder)
	}
	silent := len(s.nodes) - len(seen)
	holder = claimOf(at)
	for claim, v := range votes {
		if len(v)+silent >= s.store.majority() && len(v) > len(votes[holder]) {
			holder = claim
		}
	}
	has := votes[holder]
	if len(has) == 0 {
		return info, ""
	}
	slices.SortFunc(has, func(a, b store.Info) int { return cmp.Compare(b.Remaining, a.Remaining) })
	info.Held = true
	info.Remaining = has[min(s.store.majority(), len(has))-1].Remaining
	_, info.Holder = unmark(has[0].Holder)
	for _, one := range has {
		m, _ := unmark(one.Holder)
		info.Token = max(info.Token, cmp.Or(m.token, one.Token))
	}
	return info, holder
}

// tellHolder adds to a refusal whose lease it is.
func (s *session) tellHolder(ctx context.Context, key string, refused *store.AcquireReply) {
	if seen, err := s.see(ctx, key); err == nil {
		if info, _ := s.sum(key, seen); info.Held {
			refused.Holder, refused.HolderToken = info.Holder, info.Token
		}
	}
}

// Inspect shows the holder that most nodes have, and the queue at the door. Each vote that was requested for the lease has a
// description with its token. The others have that token or a smaller one, except while a late one is given back.
func (s *session) Inspect(ctx context.Context, key string) (store.Info, error) {
	seen, err := s.see(ctx, key)
	if err != nil {
		return store.Info{}, err
	}
	info, _ := s.sum(key, seen)
	return info, nil
}

// lost returns why a claim has lost its key, or somebody who has no claim. A renewal without a token tells, and brings nothing
// back: that of the vote, or of an owner whom nobody knows.
func (s *session) lost(ctx context.Context, key string, c *claim) error {
	stranger := s.newID("stranger", nil)
	limit, cancel := context.WithTimeout(ctx, seeLimit+s.store.slack)
	defer cancel()
	var failed error
	answers, lost := 0, store.ErrExpired
	err := gather(ctx, s, s.present(s.store.order(key)), func(i int) error {
		r := store.RenewRequest{Key: key, Owner: c.idOn(i, stranger), TTL: store.MinTTL}
		return s.nodes[i].Renew(limit, []store.RenewRequest{r})[0].Err
	}, func(_ int, err error) progress {
		switch {
		case errors.Is(err, store.ErrStolen):
			lost = store.ErrStolen
		case err != nil && !errors.Is(err, store.ErrLost):
			failed = err
			return undecided
		}
		answers++
		return s.store.progress(answers, true)
	})
	switch {
	case err != nil:
		return err
	case answers < s.store.majority():
		return unreachable(failed)
	}
	return lost
}

// List lists all nodes that answer, and inspects each key. So many answer that each majority has one of them, or there is
// an error. A key that is waited for and not held may be missing, if its door does not answer.
func (s *session) List(ctx context.Context, prefix string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		if err := s.usable(ctx); err != nil {
			yield(store.Info{}, err)
			return
		}
		known := make(map[string]bool)
		left := len(s.nodes) - s.store.majority() + 1
		var failed error
		for _, n := range s.nodes {
			goOn, err := s.listNode(ctx, n, prefix, known, yield)
			switch {
			case !goOn:
				return
			case err != nil && !abstains(err), ctx.Err() != nil:
				yield(store.Info{}, cmp.Or(ctx.Err(), err))
				return
			case err != nil:
				failed = err
				continue
			}
			left--
		}
		if left > 0 {
			yield(store.Info{}, unreachable(failed))
		}
	}
}

// listNode yields the keys of one node that are not known yet. It reports whether to go on.
func (s *session) listNode(ctx context.Context, n *node, prefix string, known map[string]bool, yield func(store.Info, error) bool) (goOn bool, err error) {
	for one, err := range n.List(ctx, prefix) {
		switch {
		case err != nil && one.Key == "":
			return true, err
		case err != nil:
			if !yield(one, err) {
				return false, nil
			}
			continue
		case known[one.Key]:
			continue
		}
		known[one.Key] = true
		info, err := s.Inspect(ctx, one.Key)
		switch {
		case err != nil && (abstains(err) || ctx.Err() != nil):
			return true, err
		case err != nil:
			if !yield(store.Info{Key: one.Key}, err) {
				return false, nil
			}
			continue
		}
		info.Queue = nil
		if (info.Held || info.Waiters > 0) && !yield(info, nil) {
			return false, nil
		}
	}
	return true, nil
}

// Force takes the votes of one claim, each by the token that its node shows. It looks again until the claim has no
// majority, because its client may have taken a vote anew.
func (s *session) Force(ctx context.Context, key string, token int64) (bool, error) {
	seen, err := s.see(ctx, key)
	if err != nil {
		return false, err
	}
	info, holder := s.sum(key, seen)
	switch {
	case !info.Held:
		return false, nil
	case token != 0 && token != info.Token:
		return false, &store.OtherHolderError{Info: info}
	}
	for range forces {
		if err := s.forceVotes(ctx, key, holder, seen); err != nil {
			return false, err
		}
		if seen, err = s.see(ctx, key); err != nil {
			return false, err
		}
		if now, still := s.sum(key, seen); !now.Held || still != holder {
			return true, nil
		}
	}
	return false, unreachable(store.ErrOutcomeUnknown)
}

// forceVotes takes a claim's votes on all nodes that have shown one.
func (s *session) forceVotes(ctx context.Context, key, holder string, seen map[int]store.Info) error {
	var forcing sync.WaitGroup
	errs := make([]error, len(s.nodes))
	for i, one := range seen {
		if one.Held && claimOf(one) == holder {
			forcing.Go(func() { _, errs[i] = s.nodes[i].Force(ctx, key, one.Token) })
		}
	}
	forcing.Wait()
	for _, err := range errs {
		if err != nil && !abstains(err) {
			if other := (*store.OtherHolderError)(nil); !errors.As(err, &other) { // otherwise its holder has changed meanwhile
				return err
			}
		}
	}
	return ctx.Err()
}
