// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// shareState is the model of a key that is shared: who holds it, and the numbers that were given. It
// also knows how many leases of a class have been granted. See shareClasses for that.
type shareState struct {
	mode    history.Mode // of the holders, if there are any
	holders int
	permits string       // of holders of permits: of each, its weight and its limit, in order
	fence   int64        // the last token of a writer or of readers
	fenced  history.Mode // whose that is
	last    int64        // the largest token
	class   int
	granted int // in class, or complete
}

// complete is granted when the whole class was.
const complete = -1

// shareInput is an operation on the model: a lease is granted, or ends. A lease that is not known to
// have been trusted for any time does both at once: the model expires it.
type shareInput struct {
	ends    bool
	expires bool
	mode    history.Mode
	token   int64
	permit  string
	class   int
	size    int // of the class
}

var shareModel = porcupine.Model{
	Init: func() any { return shareState{granted: complete} },
	Step: func(state, input, _ any) (bool, any) {
		s, in := state.(shareState), input.(shareInput)
		if in.ends {
			return s.holders > 0, s.without(in)
		}
		next, fits := s.with(in)
		if fits && in.expires {
			next = next.without(in)
		}
		return fits, next
	},
}

// with grants a lease, and reports whether it fits.
func (s shareState) with(in shareInput) (shareState, bool) {
	// A class is complete before the next one begins.
	if in.class != s.class {
		if in.class != s.class+1 || s.granted != complete {
			return s, false
		}
		s.class, s.granted = in.class, 0
	}
	if s.granted++; s.granted == in.size {
		s.granted = complete
	}
	if s.holders > 0 && (s.mode != in.mode || in.mode == history.Exclusive) {
		return s, false
	}
	switch in.mode {
	case history.Exclusive:
		if in.token <= s.last {
			return s, false
		}
	case history.Shared:
		together := in.token == s.fence && s.fenced == history.Shared
		if !together && (s.holders > 0 || in.token <= s.last) {
			return s, false
		}
	case history.Permits:
		if in.token <= s.fence || !s.hasFree(in.permit) {
			return s, false
		}
		s.permits = withPermit(s.permits, in.permit)
	}
	if in.mode != history.Permits {
		s.fence, s.fenced = in.token, in.mode
	}
	s.mode, s.holders, s.last = in.mode, s.holders+1, max(s.last, in.token)
	return s, true
}

// without ends a lease.
func (s shareState) without(in shareInput) shareState {
	s.permits = strings.Replace(s.permits, in.permit, "", 1)
	if s.holders--; s.holders == 0 {
		s.mode = history.Exclusive // as good as any
	}
	return s
}

// permitOf is a holder of permits in a state: two bytes.
func permitOf(l *lease) string {
	if l.mode != history.Permits {
		return ""
	}
	return string([]byte{byte(l.weight), byte(l.limit)})
}

// withPermit adds one, so that equal states are equal texts.
func withPermit(all, permit string) string {
	some := slices.Collect(slices.Chunk([]byte(all+permit), 2))
	slices.SortFunc(some, slices.Compare)
	return string(slices.Concat(some...))
}

// hasFree reports whether one more fits beside the holders: all their weights are no more than the
// smallest limit.
func (s shareState) hasFree(permit string) bool {
	sum, limit := 0, int(permit[1])
	for some := range slices.Chunk([]byte(s.permits+permit), 2) {
		sum, limit = sum+int(some[0]), min(limit, int(some[1]))
	}
	return sum <= limit
}

// shareClasses puts leases into an order that each history of the key has: writers by their tokens,
// readers of one token together, and the permits between two others together. Classes follow each
// other, and a search that tried another order would find out in the end, step by step.
func shareClasses(leases []*lease) (classes [][]*lease) {
	slices.SortFunc(leases, func(a, b *lease) int {
		return cmp.Or(cmp.Compare(a.token, b.token), cmp.Compare(a.mode, b.mode), cmp.Compare(a.told, b.told))
	})
	for i, l := range leases {
		together := i > 0 && l.fits(leases[i-1]) && (l.mode == history.Permits || l.token == leases[i-1].token)
		if !together {
			classes = append(classes, nil)
		}
		classes[len(classes)-1] = append(classes[len(classes)-1], l)
	}
	return classes
}

// checkShareModel is checkModel for a key that is shared: there is an order of all grants and ends, each
// at some moment at which it may have been, that the model allows.
func (c *checker) checkShareModel(k *key) {
	leases := slices.DeleteFunc(slices.Clone(k.leases), func(l *lease) bool { return l.overtaken })
	classes := shareClasses(leases)
	c.forgiveShares(classes)
	for first := 0; first < len(leases); first += window - shared {
		some := leases[first:min(first+window, len(leases))]
		switch porcupine.CheckOperationsTimeout(shareModel, shareOperations(shareClasses(slices.Clone(some))), patience) {
		case porcupine.Ok:
		case porcupine.Unknown:
			c.violate("model", k.name, "the %d leases from token %d on took too long to judge", len(some), some[0].token)
		default:
			c.violate("model", k.name, "no order of the %d leases from token %d to %d is one of a key that is shared",
				len(some), some[0].token, some[len(some)-1].token)
		}
		if first+window >= len(leases) {
			return
		}
	}
}

// forgiveShares is forgiveInversions: a lease that was trusted when one of a later class had been given
// belongs to a history that the store has lost, if it has lost one then.
func (c *checker) forgiveShares(classes [][]*lease) {
	var next *lease // of a later class, and given first of these
	for _, class := range slices.Backward(classes) {
		for _, l := range class {
			if next != nil && l.valid > l.told && l.valid > next.told {
				c.forgive(next, l)
			}
		}
		for _, l := range class {
			if next == nil || l.told < next.told {
				next = l
			}
		}
	}
}

// shareOperations are the grants and ends of leases. An end is at the last moment at which the lease is
// known to have been trusted, since no history is a worse one if a lease ends earlier.
func shareOperations(classes [][]*lease) (ops []porcupine.Operation) {
	for i, class := range classes {
		for _, l := range class {
			in := shareInput{mode: l.mode, token: l.token, permit: permitOf(l), class: i + 1, size: len(class)}
			in.expires = l.excused || l.valid == l.told
			ops = append(ops, porcupine.Operation{Input: in, Call: int64(l.asked), Return: int64(l.told), Metadata: l.op})
			if !in.expires {
				end := shareInput{ends: true, permit: in.permit}
				ops = append(ops, porcupine.Operation{Input: end, Call: int64(l.valid), Return: int64(l.valid), Metadata: l.op})
			}
		}
	}
	return ops
}

func (s shareState) String() string {
	return fmt.Sprintf("%d holders of mode %q, last token %d, fence %d", s.holders, s.mode, s.last, s.fence)
}
