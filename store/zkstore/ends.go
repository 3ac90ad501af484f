// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"fmt"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// Why an owner no longer holds its key.
var (
	errSessionEnded = fmt.Errorf("%w: ZooKeeper has ended the session", store.ErrExpired)
	// The node is gone, and the leader had not heard of the session for its timeout.
	errSessionMayHaveEnded = fmt.Errorf("%w: ZooKeeper has not heard of the session in time", store.ErrExpired)

	errTTLEnded    = fmt.Errorf("%w: not renewed in time", store.ErrExpired)
	errNodeDeleted = fmt.Errorf("%w: somebody has deleted its node", store.ErrLost)
	errNodeGone    = fmt.Errorf("%w: its node was already gone", store.ErrLost)
	errBehind      = fmt.Errorf("%w: its node is before the owner's", store.ErrStolen)
	errNoNode      = fmt.Errorf("%w: the owner has no node", store.ErrLost)
	errReleased    = fmt.Errorf("%w: it was released before", store.ErrLost)
)

// An endings remembers why holdings have ended. A release may come just after the end, before its
// client has read the notification, and then has to say why it found nothing.
type endings struct {
	causes map[string]error // by owner
	order  []string         // the oldest first
}

// mostEndings is how many ends are remembered. A release that comes later is told less.
const mostEndings = 1024

func (e *endings) add(owner string, cause error) {
	if e.causes == nil {
		e.causes = make(map[string]error)
	}
	if _, known := e.causes[owner]; !known {
		e.order = append(e.order, owner)
	}
	e.causes[owner] = cause
	if len(e.order) > mostEndings {
		delete(e.causes, e.order[0])
		e.order = e.order[1:]
	}
}

// notHeldLocked returns why the lock node does not hold, where that is known without asking the
// server.
func (k *lockNode) notHeldLocked() error {
	session, _ := k.store.health.now()
	switch {
	case k.lost:
		return errNodeDeleted
	case k.born != 0 && k.born != session:
		return errSessionEnded
	case k.phase == kept:
		return errReleased
	case k.phase == leaving || watchdog.Refresh() >= k.until:
		return errTTLEnded
	}
	return errNoNode
}
