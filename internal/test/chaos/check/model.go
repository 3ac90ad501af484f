// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Porcupine's memory grows with the square of a history's length, so it is given
// a window of leases at a time. Neighbors share some, so that what went wrong
// between two leases of different windows is in a common one, unless they are
// further apart than that; those the other rules see.
const (
	window = 1000
	shared = 100
	// patience bounds the search in one window. A window takes milliseconds.
	patience = time.Minute
)

// lockState is the model: a lock is free or has a holder, and remembers the
// largest token. It also knows how many leases there have been: since tokens
// rise, the order of their beginnings is that of their tokens, and a search that
// tried others would find each of them wrong in the end, one by one.
type lockState struct {
	held  bool
	count int
	last  int64
}

// lockInput is an operation on the model: a lease begins or ends. An operation's answer is
// part of the input, since each operation names its token.
type lockInput struct {
	begins bool
	number int // of the lease, by token
	token  int64
}

var lockModel = porcupine.Model{
	Init: func() any { return lockState{} },
	Step: func(state, input, _ any) (bool, any) {
		s, in := state.(lockState), input.(lockInput)
		if in.begins {
			return !s.held && in.number == s.count && in.token > s.last, lockState{true, s.count + 1, in.token}
		}
		return s.held && in.number == s.count-1, lockState{false, s.count, s.last}
	},
}

// checkModel: there is an order of the beginnings and ends of all leases, each at
// some moment at which it may have been, that a lock with rising tokens allows.
func (c *checker) checkModel(k *key) {
	// Those that were overtaken belong to a history that the store has lost.
	leases := slices.DeleteFunc(slices.Clone(k.leases), func(l *lease) bool { return l.overtaken })
	slices.SortFunc(leases, func(a, b *lease) int { return cmp.Compare(a.token, b.token) })
	c.forgiveInversions(leases)
	for first := 0; first < len(leases); first += window - shared {
		some := leases[first:min(first+window, len(leases))]
		switch porcupine.CheckOperationsTimeout(lockModel, operations(some), patience) {
		case porcupine.Ok:
		case porcupine.Unknown:
			c.violate("model", k.name, "the %d leases from token %d on took too long to judge", len(some), some[0].token)
		default:
			c.violate("model", k.name, "no order of the %d leases from token %d to %d is one of a lock",
				len(some), some[0].token, some[len(some)-1].token)
		}
		if first+window >= len(leases) {
			return
		}
	}
}

// forgiveInversions looks for leases that were trusted when one with a larger
// token had been given, whether or not that was over. With a store that lost the
// first one meanwhile, nothing is wrong: its caller heard late of what it had been
// given before the loss, or of what a client handed on that had lost it.
func (c *checker) forgiveInversions(byToken []*lease) {
	var next *lease // that one with a larger token which was given first
	for _, l := range slices.Backward(byToken) {
		if next != nil && l.valid > l.told && l.valid > next.told {
			c.forgive(next, l)
		}
		if next == nil || l.told < next.told {
			next = l
		}
	}
}

// forgive excuses l, which was trusted after next had been given, if the store may have lost it.
func (c *checker) forgive(next, l *lease) {
	first, second, handedOn := next, l, c.wasLost(next, l)
	if l.told < next.told {
		first, second, handedOn = l, next, false
	}
	l.excused = l.excused || handedOn || c.excuse(first, second) != nil
}

// operations are the beginnings and ends of leases, which are in the order of
// their tokens.
func operations(leases []*lease) []porcupine.Operation {
	ops := make([]porcupine.Operation, 0, 2*len(leases))
	for i, l := range leases {
		ops = append(ops, porcupine.Operation{
			Input: lockInput{true, i, l.token}, Call: int64(l.asked), Return: int64(l.told), Metadata: l.op,
		})
		end := porcupine.Operation{
			Input: lockInput{false, i, l.token}, Call: int64(l.valid), Return: math.MaxInt64, Metadata: l.op,
		}
		if l.excused || l.valid == l.told {
			// The store may have forgotten it at any time; or nobody asked whether it
			// was trusted, and it may have been over before its caller knew of it.
			end.Call = int64(l.asked)
		}
		// A lease whose end nobody saw may last for ever, as far as is known. But
		// it is over before the next one begins, which says the same and leaves
		// porcupine little to try.
		if i+1 < len(leases) {
			end.Return = max(int64(leases[i+1].told), end.Call)
		}
		ops = append(ops, end)
	}
	return ops
}

func (s lockState) String() string { return fmt.Sprintf("held %t, last token %d", s.held, s.last) }
