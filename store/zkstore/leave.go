// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/internal/backoff"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A lock node that leaves stays its owner's until its node is certainly deleted. The owner may
// repeat its request before that. It must not be granted the key by a node that is about to be
// deleted.

// Fire is called when nobody has extended the lock node in time.
func (k *lockNode) Fire(watchdog.Instant) { k.store.task(k.leave) }

// leave deletes the node of a lock node whose time has ended, and retries if it can't. The time may
// have been extended meanwhile.
func (k *lockNode) leave() {
	if k.take(context.Background()) != nil {
		return // closed
	}
	defer k.put()
	if !k.leavesNow() {
		return
	}
	if _, err := k.delete(); err != nil {
		k.store.log.Add(slog.LevelWarn, "zkstore: a node could not be removed yet", slog.String("lock", k.lock), slog.Any("error", err))
	}
}

// leavesNow reports whether the lock node's time has come.
func (k *lockNode) leavesNow() bool {
	st := k.store
	st.mu.Lock()
	defer st.mu.Unlock()
	if k.over {
		return false
	}
	if now := watchdog.Refresh(); now < k.until {
		st.watchdog.Set(&k.entry, k.until)
		return false
	}
	if k.phase == holding {
		st.ends.add(k.owner, errTTLEnded)
	}
	return true
}

// delete ends the lock node: it removes its node, and if that is uncertain, every node with its
// name. It reports whether a node existed. After success nothing is left of the lock node, and
// after a failure the deletion is retried. An uncertain lock node is searched once more when the
// session's timeout has passed. A request that was given up can still be executed late, but not
// later than the server waits for a silent client.
func (k *lockNode) delete() (deleted bool, err error) {
	st := k.store
	st.mu.Lock()
	k.phase = leaving // from here on, it is right that the node is gone
	st.mu.Unlock()
	deleted, err = k.deleteNodes()
	st.mu.Lock()
	defer st.mu.Unlock()
	if err != nil {
		k.uncertain = true // the nodes may exist or not
		k.leaveAgainLocked(err)
		return deleted, err
	}
	k.forgetLocked()
	if k.uncertain {
		_, timeout := st.health.now()
		k.lateLocked(timeout)
	}
	return deleted, nil
}

func (k *lockNode) deleteNodes() (deleted bool, err error) {
	st := k.store
	st.mu.Lock()
	own, uncertain := k.ownLocked(), k.uncertain
	st.mu.Unlock()
	var paths []string
	if uncertain {
		if paths, err = k.find(); err != nil {
			return false, err
		}
	} else if own != "" {
		paths = []string{own}
	}
	for _, path := range paths {
		err := st.health.ask(true, func() error { return st.conn.Delete(path, -1) })
		if err != nil && err != zk.ErrNoNode { //nolint:errorlint // the driver's own value
			return deleted, st.failure(err, true)
		}
		deleted = deleted || err == nil
	}
	return deleted, nil
}

const (
	// retryIn is the pause before the deletion of a node is retried.
	retryIn = time.Second
	// longestRetry is how long the pauses become if the server refuses the deletion, until somebody
	// changes the rights.
	longestRetry = time.Minute
)

// retryAfter returns how long to wait after an error. It counts the server's refusals.
func retryAfter(err error, refusals *int) time.Duration {
	if errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrOutcomeUnknown) {
		return retryIn
	}
	d := backoff.Doubled(retryIn, *refusals, longestRetry)
	*refusals++
	return d
}

func (k *lockNode) leaveAgainLocked(err error) {
	if !k.over { // the end of its session has removed its nodes
		k.endAtLocked(watchdog.Now().Add(retryAfter(err, &k.refusals)))
	}
}

// forgetLocked records that nothing is left of the lock node.
func (k *lockNode) forgetLocked() {
	st := k.store
	st.watchdog.Remove(&k.entry)
	if st.lockNodes[k.owner] == k {
		delete(st.lockNodes, k.owner)
	}
	k.phase, k.over = leaving, true
	k.setNodeLocked("")
}
