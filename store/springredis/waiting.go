// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"slices"
	"sync"
)

// A waiting list knows which owners of one session wait for which Redis key, so
// that a message about the key can wake them. An owner is on it from before its
// request is sent: a release right after the answer must find it there.
type waitingList struct {
	mu     sync.Mutex
	owners map[string][]string // by Redis key
}

func newWaitingList() *waitingList { return &waitingList{owners: make(map[string][]string)} }

func (l *waitingList) add(redisKey, owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.owners[redisKey], owner) {
		l.owners[redisKey] = append(l.owners[redisKey], owner)
	}
}

func (l *waitingList) remove(redisKey, owner string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := slices.DeleteFunc(l.owners[redisKey], func(o string) bool { return o == owner })
	if len(rest) == 0 {
		delete(l.owners, redisKey)
	} else {
		l.owners[redisKey] = rest
	}
}

// of returns who waits for the key.
func (l *waitingList) of(redisKey string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.owners[redisKey])
}
