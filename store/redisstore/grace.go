// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// The kinds of answers of grace.lua.
const (
	graceRuns = iota
	graceIsToCome
	graceIsImpossible
	graceIsBroken
)

// A bucketGrace is what grace.lua says of a bucket.
type bucketGrace struct {
	bucket int
	err    error // no answer
	kind   int64
	left   time.Duration // for which nothing is granted, or will be

	// With graceRuns and graceIsToCome:
	clock time.Time // the server's
	epoch epochRecord
	cause causeRecord // zero: not known
	info  string      // INFO replication
}

// An epochRecord is what an epoch says, as fragments.go describes it.
type epochRecord struct {
	id             string
	ready          int64
	longest, older time.Duration
	noted          int64
}

// A causeRecord is what a cause says. Times are in ms.
type causeRecord struct {
	id, run      string
	ready, since int64
	before, ran  string
	used         int64
	opened       int64
}

func parseEpoch(text string) (e epochRecord) {
	f := strings.Fields(text)
	if len(f) != len(epoch) {
		return e
	}
	return epochRecord{id: f[0], ready: numberOf(f[1]), longest: millisOf(f[2]), older: millisOf(f[3]), noted: numberOf(f[5])}
}

func parseCause(text string) (c causeRecord) {
	f := strings.Fields(text)
	if len(f) != len(cause) {
		return c
	}
	return causeRecord{id: f[0], run: known(f[1]), ready: numberOf(f[2]), since: numberOf(f[3]), before: known(f[4]), ran: known(f[5]), used: numberOf(f[6]), opened: numberOf(f[8])}
}

// known is a word of a record, or nothing.
func known(word string) string { return strings.TrimPrefix(word, "-") }

func numberOf(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // scripts write digits; else it is not known
	return n
}

func millisOf(digits string) time.Duration { return time.Duration(numberOf(digits)) * time.Millisecond }

// atOnce is of how many buckets a server is asked without a chance for other clients: some milliseconds.
const atOnce = 64

// askGraces asks for the graces of all buckets.
func (st *Store) askGraces(ctx context.Context) (all []bucketGrace) {
	calls := borrowCalls(buckets)
	defer returnCalls(calls)
	for bucket := range *calls {
		st.askGrace(&(*calls)[bucket], bucket)
	}
	for some := range slices.Chunk(*calls, atOnce) {
		for _, result := range st.run(ctx, some) {
			b := st.readGrace(result)
			b.bucket = len(all)
			all = append(all, b)
		}
	}
	return all
}

// askGrace makes the call that asks for the grace of a bucket.
func (st *Store) askGrace(c *call, bucket int) {
	c.script = graceScript
	c.epochs6(st.settings.prefix, bucket)
	c.millis(st.settings.grace)
}

// epochs6 adds the Redis key of an epoch six times, for a script that has it where all scripts have it.
func (c *call) epochs6(prefix string, bucket int) {
	for range 6 {
		c.buffer = appendEpoch(c.buffer, prefix, bucket)
		c.end()
		c.keys++
	}
}

// Grace returns for how long keys of the key's bucket are granted to nobody.
func (s *session) Grace(ctx context.Context, key string) (left time.Duration, begun bool, err error) {
	if err := cmp.Or(s.usable(), redisconn.CheckKey(key)); err != nil {
		return 0, false, err
	}
	if s.store.settings.grace == 0 {
		return 0, false, nil
	}
	var c call
	s.store.askGrace(&c, bucketOf(key))
	b := s.store.readGrace(s.store.runOne(ctx, &c))
	if b.err != nil {
		return 0, false, b.err
	}
	err = s.store.graceFailed(b.kind, bucketOf(key))
	return b.left, err == nil && b.kind == graceRuns, err
}

// graceFailed is the error of a bucket that can have no grace.
func (st *Store) graceFailed(kind int64, bucket int) error {
	switch kind {
	case graceIsBroken:
		return foreign(string(appendEpoch(nil, st.settings.prefix, bucket)))
	case graceIsImpossible:
		return fmt.Errorf("%w: the server's history can't be seen (+info|replication +info|server)", store.ErrDenied)
	}
	return nil
}

func (st *Store) readGrace(result redisdriver.Result) (b bucketGrace) {
	r := newReply(result)
	b.kind = r.between(graceRuns, graceIsBroken)
	b.left = r.millis()
	if r.err == nil && r.More() {
		b.clock = time.UnixMilli(r.number())
		b.epoch = parseEpoch(r.text())
		b.cause = parseCause(r.text())
		b.info = r.text()
	}
	b.err = r.failed(st)
	return b
}
