// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
)

// A keyState is its machine's host. All methods in this file are called in steps of the machine, under
// the shard's mutex.
var _ machine.Host = (*keyState)(nil)

// NewOwner makes an owner id whose events reach this key.
func (s *keyState) NewOwner() string {
	owner := newOwner(s.shard.number)
	s.shard.owners[owner] = s
	return owner
}

// DropOwner makes later events for the owner reach nobody.
func (s *keyState) DropOwner(owner string) { delete(s.shard.owners, owner) }

// BeginsTenure forgets the context of the caller that the root of a tenure was made for. The tenure may last much
// longer than that caller's lease, and would keep all values of its context.
func (s *keyState) BeginsTenure(l *machine.Lease) { leaseOf(l).own.context = context.Background() }

// NewRelease makes a release, for which Close waits.
func (s *keyState) NewRelease() *machine.Release {
	c := s.shard.client
	call := &releaseCall{client: c, lane: c.session.Lane(s.machine.Name)}
	call.core.Caller, call.entry.Task = call, call
	c.underWay.Add(1)
	return &call.core
}

// TellEnded tells everybody that a lease has ended.
func (s *keyState) TellEnded(l *machine.Lease) { leaseOf(l).endedLocked() }

// traits returns what does not change about a key.
func (c *Client) traits(key string) machine.Traits {
	return machine.Traits{
		Lane:         int32(c.session.Lane(key)), //nolint:gosec // there are fewer
		Queues:       c.features.FIFO,
		TriesRequeue: c.features.Retention,
	}
}

// Leaves counts a release that leaves.
func (s *keyState) Leaves() {
	if s.shard.leaving == nil {
		s.shard.leaving = make(map[string]int)
	}
	s.shard.leaving[s.machine.Name]++
}

const shards = 64

// newOwner makes the secret identity of one acquisition: 128 random bits, a dot, and the number of
// the shard that keeps the key in this client. The number is needed to handle an event that names
// only the owner.
func newOwner(shard byte) string {
	var random [16]byte
	rand.Read(random[:]) // never fails, by its documentation
	var text [25]byte
	base64.RawURLEncoding.Encode(text[:22], random[:])
	text[22] = '.'
	hex.Encode(text[23:], []byte{shard})
	return string(text[:])
}

// ownerShard returns the shard number at the end of an owner id. The id is not trusted.
func ownerShard(owner string) (byte, bool) {
	if len(owner) != 25 || owner[22] != '.' {
		return 0, false
	}
	var shard [1]byte
	if _, err := hex.Decode(shard[:], []byte(owner[23:])); err != nil || shard[0] >= shards {
		return 0, false
	}
	return shard[0], true
}
