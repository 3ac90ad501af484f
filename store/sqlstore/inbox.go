// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/pubsub"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// An inbox is a channel that nobody else knows. Its name is random, because every user of the
// database may listen and send on any channel. Its messages are:
//
//	grant OWNER TOKEN CLOCKED MICROSECONDS WAITERS
//	share OWNER TOKEN FENCE WEIGHT MICROSECONDS WAITERS
//	contended OWNER
//	forced OWNER
//	wake OWNER

// channelPrefix begins the names of inboxes.
const channelPrefix = "asynclock_"

// openInbox begins to listen.
func (s *session) openInbox() {
	var name [16]byte
	_, _ = rand.Read(name[:]) // never fails
	s.channel = channelPrefix + hex.EncodeToString(name[:])
	s.inbox = pubsub.Open(&listener{store: s.store, channel: s.channel}, pubsub.Handler{Message: s.notified, Up: s.up, Down: s.down})
}

// up: waiters poll once, because they may have missed something.
func (s *session) up() {
	s.store.log.Add(slog.LevelInfo, "sqlstore: notifications come through", slog.String("client", s.id))
	s.events(store.Event{Kind: store.EventResync})
}

// down: waiters poll once, and the answer tells them to go on polling.
func (s *session) down(err error) {
	s.store.log.Add(slog.LevelWarn, "sqlstore: notifications don't come through; waiters poll instead",
		slog.String("client", s.id), slog.Any("error", err))
	s.events(store.Event{Kind: store.EventResync})
	s.events(store.Event{Kind: store.EventDisconnected})
}

// settleWithin is how long the first requests of a session wait for its inbox. Otherwise they
// would name no inbox, and their owners would have to poll, although the inbox would work a
// moment later.
const settleWithin = 250 * time.Millisecond

// address returns the channel for this client's notifications. It is empty while the channel
// is not known to work.
func (s *session) address(ctx context.Context) string {
	if s.inbox == nil || !s.inbox.Live() && !s.inbox.WaitLive(ctx, settleWithin) {
		return ""
	}
	return s.channel
}

func (s *session) notified(payload string) {
	if e, ok := parseEvent(payload); ok {
		s.events(e)
	}
}

// parseEvent reads a message of an inbox.
func parseEvent(payload string) (e store.Event, ok bool) {
	words := strings.Split(payload, " ")
	if len(words) < 2 || !sqlconn.IsField(words[1]) {
		return e, false
	}
	e.Owner = words[1]
	switch words[0] {
	case "grant":
		return parseGrant(e, words[2:], 4, func(n []int64) (store.Grant, bool) {
			return store.Grant{Token: n[0], TokensFollowClock: n[1] == 1}, true
		})
	case "share":
		return parseGrant(e, words[2:], 5, func(n []int64) (store.Grant, bool) {
			return store.Grant{Token: n[0], Fence: n[1], Weight: int32(n[2])}, n[1] <= n[0] && n[2] <= store.MaxPermits
		})
	case "contended":
		e.Kind = store.EventQueued
	case "forced":
		e.Kind = store.EventForced
	case "wake":
		e.Kind = store.EventWake
	}
	return e, e.Kind != 0 && len(words) == 2
}

// parseGrant reads the numbers of a message of a grant. The last two are its TTL and how many wait.
func parseGrant(e store.Event, words []string, count int, read func([]int64) (store.Grant, bool)) (_ store.Event, ok bool) {
	if len(words) != count {
		return e, false
	}
	numbers := make([]int64, count)
	for i := range numbers {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil || n < 0 {
			return e, false
		}
		numbers[i] = n
	}
	ttl, waiters := numbers[count-2], numbers[count-1]
	if numbers[0] == 0 || ttl > int64(store.MaxTTL/time.Microsecond) || waiters > 1<<31-1 {
		return e, false
	}
	e.Kind, e.GrantTTL, e.Waiters = store.EventGrant, time.Duration(ttl)*time.Microsecond, int(waiters)
	e.Grant, ok = read(numbers)
	return e, ok
}
