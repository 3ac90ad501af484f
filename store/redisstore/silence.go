// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"log/slog"
	"sync"
)

// A silence knows the inboxes through which no messages come. It begins with the first of them and
// ends with the last, however many clients and buckets there are. The log says both.
type silence struct {
	mu sync.Mutex
	of map[*channel]struct{}
}

// silent notes that no messages come through a channel of the session, and why.
func (s *session) silent(ch *channel, reason error) {
	all := &s.store.silence
	all.mu.Lock()
	defer all.mu.Unlock()
	if s.left.Load() {
		return // Close forgets the channel, or has done so
	}
	if all.of == nil {
		all.of = make(map[*channel]struct{})
	}
	if len(all.of) == 0 {
		s.store.log.Add(slog.LevelWarn, "redisstore: no usable pub-sub; waiters ask again and again instead", slog.Any("error", reason))
	}
	all.of[ch] = struct{}{}
}

// audible notes that messages come through a channel of the session.
func (s *session) audible(ch *channel) {
	if s.store.silence.ends(ch) {
		s.store.log.Add(slog.LevelInfo, "redisstore: pub-sub is usable again")
	}
}

// ends forgets a channel. It reports whether that was the last silent one.
func (s *silence) ends(ch *channel) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, silent := s.of[ch]
	delete(s.of, ch)
	return silent && len(s.of) == 0
}
