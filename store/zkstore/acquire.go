// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// rounds is how often a request reads a lock again if the lock's nodes change while it is being
// read.
const rounds = 16

// Acquire makes a node for each owner that has none, finds the node's rank, and watches the node
// before it.
func (s *session) Acquire(ctx context.Context, batch []store.AcquireRequest) []store.AcquireReply {
	return each(ctx, s, batch, s.acquire, func(err error) store.AcquireReply {
		return store.AcquireReply{Err: err}
	})
}

func (s *session) acquire(ctx context.Context, r store.AcquireRequest) store.AcquireReply {
	start := watchdog.Refresh()
	in, err := s.store.checkAcquire(&r)
	if err != nil {
		return store.AcquireReply{Err: err}
	}
	for {
		k := s.lockNodeOf(r.Owner, in)
		if k == nil {
			return store.AcquireReply{Status: store.Withdrawn}
		}
		if err := k.take(ctx); err != nil {
			return store.AcquireReply{Err: err}
		}
		reply, err := k.acquire(&r, in.kind, start)
		if errors.Is(err, errOver) {
			k.put()
			continue
		}
		if err != nil {
			reply = store.AcquireReply{Err: s.store.failure(err, true)}
		}
		valid := k.finishRequest(&reply, &r)
		k.put()
		if valid {
			return reply
		}
	}
}

func (st *Store) checkAcquire(r *store.AcquireRequest) (in target, err error) {
	_, timeout := st.health.now()
	switch {
	case r.Owner == "":
		return in, fmt.Errorf("%w: empty owner", store.ErrInvalidOption)
	case r.TTL <= 0:
		return in, fmt.Errorf("%w: TTL must be positive", store.ErrInvalidOption)
	case r.TTL < timeout && !st.settings.shortTTLs:
		return in, fmt.Errorf("%w: the TTL of %v, which a maximum hold may have shortened, is less than ZooKeeper's session timeout of %v; see zkstore.WithShortTTLs",
			store.ErrInvalidOption, r.TTL, timeout)
	}
	if err := st.Features().Check(r.Share, r.Extra); err != nil {
		return in, err
	}
	if in.lock, err = st.settings.names.lock(r.Key); err != nil {
		return in, err
	}
	in.kind, err = st.settings.kindOf(r.Key, r.Share.Mode)
	return in, err
}

// kindOf returns the kind of the node for a share of the key.
func (s *settings) kindOf(key string, mode store.Mode) (kind, error) {
	switch {
	case s.readWrite == nil || !s.readWrite(key):
		if mode == store.Shared {
			return 0, fmt.Errorf("%w: readers of the key %q, which is not one of zkstore.WithReadWriteKeys", store.ErrUnsupported, key)
		}
		return mutex, nil
	case mode == store.Shared:
		return reader, nil
	}
	return writer, nil
}

// acquire tries until the node's rank is known and does not change for a moment.
func (k *lockNode) acquire(r *store.AcquireRequest, as kind, start watchdog.Instant) (store.AcquireReply, error) {
	fresh := false
	for range rounds {
		reply, done, err := k.acquireRound(r, as, start, &fresh)
		if done || err != nil {
			return reply, err
		}
	}
	return store.AcquireReply{}, fmt.Errorf("%w: the lock's nodes change all the time", store.ErrUnreachable)
}

// acquireRound makes the node if it is missing, finds its rank, and acts on the rank. It is not
// done if the lock's nodes have changed meanwhile. Fresh becomes true when it makes the node.
func (k *lockNode) acquireRound(r *store.AcquireRequest, as kind, start watchdog.Instant, fresh *bool) (reply store.AcquireReply, done bool, err error) {
	has, err := k.hasNode(as, start)
	if err != nil {
		return reply, false, err
	}
	if !has {
		if !r.Wait {
			v, err := k.store.peek(k.lock, as)
			if err != nil {
				return reply, false, err
			}
			switch with := v.with(as); {
			case with.isMixed():
				return reply, false, errMixed
			case !with.holds():
				return v.held(k.store, 0), true, nil
			}
		}
		if err := k.create(r.Description); err != nil {
			return reply, false, err
		}
		*fresh = true
	}
	v, ok, err := k.look()
	if err != nil || !ok {
		return reply, false, err
	}
	return k.actOnRank(r, v, start, *fresh)
}

// actOnRank takes the key, gives up, or waits behind the node that is in the way. It is not done if
// that node or our own has been deleted meanwhile.
func (k *lockNode) actOnRank(r *store.AcquireRequest, v view, start watchdog.Instant, fresh bool) (reply store.AcquireReply, done bool, err error) {
	switch {
	case v.isMixed():
		return reply, false, k.leaveMixed()
	case v.holds():
		return k.granted(r, v, start)
	case !r.Wait:
		_, err := k.delete()
		return v.held(k.store, 1), true, err
	case fresh && r.Ticket == 0 && r.QueueLimit > 0 && v.ahead() >= r.QueueLimit:
		_, err := k.delete()
		return store.AcquireReply{Status: store.Full}, true, err
	}
	if ok, err := k.watchBefore(v); !ok {
		return reply, false, err
	}
	reply, done = k.waits(r, v, start)
	return reply, done, nil
}

// errMixed: programs disagree about whether the key has readers, so its nodes have no common order.
var errMixed = fmt.Errorf("%w: a mutex and a read-write lock have the same path; see zkstore.WithReadWriteKeys", store.ErrForeignData)

// leaveMixed gives up, unless the key is held. A holder's node says that to others.
func (k *lockNode) leaveMixed() error {
	if k.hasKey() {
		return errMixed
	}
	_, err := k.delete()
	return cmp.Or(err, errMixed)
}

// errOver: the lock node has ended, and its owner repeats the request.
var errOver = errors.New("zkstore: over")

// hasNode reports whether the lock node has a node. A node that holds beyond its time is deleted,
// since its TTL has ended, though late. A node that leaves is deleted too, because it may be
// deleted at any moment anyway. A waiter that requests another share than before loses its place. A
// node whose creation was not answered is found by its name.
func (k *lockNode) hasNode(as kind, start watchdog.Instant) (bool, error) {
	st := k.store
	st.mu.Lock()
	if st.lockNodes[k.owner] != k {
		st.mu.Unlock()
		return false, errOver
	}
	own, uncertain := k.ownLocked(), k.uncertain
	ends := k.phase == leaving || own != "" && k.phase == holding && start >= k.until ||
		k.phase != holding && k.rest == "" && k.kind != as
	if own == "" {
		k.setNodeLocked("")
	}
	st.mu.Unlock()
	switch {
	case ends:
		if _, err := k.delete(); err != nil {
			return false, err
		}
		return false, errOver
	case own != "":
		return true, nil
	case !uncertain:
		return false, nil
	}
	nodes, err := k.find()
	if err != nil || len(nodes) == 0 {
		return false, err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	k.setNodeLocked(nodes[0])
	return true, nil
}

// find returns the paths of the nodes with the lock node's name. There is more than one if a
// creation took effect after it had been given up. The present server may not know yet what another
// server has done for the session.
func (k *lockNode) find() (paths []string, err error) {
	if _, err := k.store.conn.Sync(k.lock); err != nil {
		return nil, k.store.failure(err, false)
	}
	children, err := k.store.children(k.lock)
	nodes := nodesAmong(children)
	for _, i := range k.ownAmong(nodes) {
		paths = append(paths, k.lock+"/"+nodes[i].name)
	}
	return paths, err
}

// create makes the node, and the lock if it is missing. If the answer does not come, it is
// uncertain whether the node was made.
func (k *lockNode) create(holder string) error {
	st := k.store
	for range rounds {
		var path string
		err := st.health.ask(true, func() (err error) {
			path, err = st.conn.Create(k.lock+"/"+k.prefix, []byte(holder), zk.FlagEphemeralSequential, st.settings.acl)
			return err
		})
		switch {
		case err == nil:
			st.mu.Lock()
			defer st.mu.Unlock()
			k.setNodeLocked(path)
			return nil
		case err != zk.ErrNoNode: //nolint:errorlint // the driver's own value
			st.mu.Lock()
			defer st.mu.Unlock()
			k.uncertain = k.uncertain || err != zk.ErrSessionExpired && err != zk.ErrNoAuth && err != zk.ErrInvalidACL //nolint:errorlint // likewise
			return err
		}
		if err := st.makeLock(k.lock); err != nil && err != zk.ErrNoNode { //nolint:errorlint // likewise; empty locks vanish
			return st.failure(err, false)
		}
	}
	return fmt.Errorf("%w: the lock vanishes as soon as it is made", store.ErrUnreachable)
}

// granted answers that the node is the first. It is not ok if the node has been deleted meanwhile.
func (k *lockNode) granted(r *store.AcquireRequest, v view, start watchdog.Instant) (reply store.AcquireReply, ok bool, err error) {
	st := k.store
	grant, err := k.grant()
	if err != nil {
		return reply, false, err
	}
	st.mu.Lock()
	if k.ownLocked() == "" {
		st.mu.Unlock()
		return reply, false, nil
	}
	until := start.Add(r.TTL)
	if k.phase == holding {
		until = max(until, k.until)
	}
	k.phase = holding
	k.endAtLocked(until)
	k.watch = k.watch || r.NotifyQueued
	k.waiters = v.waiters()
	watch, born := k.watch && !k.counting, k.born
	st.mu.Unlock()
	promise, err := st.promise(born, start)
	if err != nil {
		return reply, false, err
	}
	if watch {
		switch err := k.count(); {
		case errors.Is(err, zk.ErrNoNode): // the whole lock has been deleted, so its nodes had been before
			return reply, false, nil
		case err != nil:
			return reply, false, err
		}
	}
	return store.AcquireReply{
		Status: store.Granted, Grant: grant, TTL: promise, Waiters: v.waiters(),
	}, true, nil
}

// waits answers that the node is not the first. It is not ok if the node has been deleted
// meanwhile.
func (k *lockNode) waits(r *store.AcquireRequest, v view, start watchdog.Instant) (reply store.AcquireReply, ok bool) {
	st := k.store
	st.mu.Lock()
	defer st.mu.Unlock()
	if k.ownLocked() == "" {
		return reply, false
	}
	k.phase = waiting
	k.heard = max(k.heard, start) // requests overtake each other
	k.grantTTL = r.GrantTTL
	k.watch = k.watch || r.NotifyQueued
	k.endAtLocked(k.heard.Add(r.WaiterTTL))
	number, _ := v.nodes[v.rank].sequenceNumber()
	return store.AcquireReply{
		Status:    store.Waiting,
		Remaining: -1,
		Rank:      v.ahead(),
		Ticket:    number + 1,
		Mark:      firstToken(k.czxid) - 1, // the node's own token is its only one
	}, true
}

// finishRequest ends a request. It forgets an owner that has nothing, and an owner that was
// withdrawn meanwhile leaves. It reports whether the reply is still valid. It is not valid if the
// key was taken away before the reply was given, because the client would not be notified of that.
func (k *lockNode) finishRequest(reply *store.AcquireReply, r *store.AcquireRequest) bool {
	st := k.store
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.withdrawn.Has(k.owner):
		*reply = store.AcquireReply{Status: store.Withdrawn}
		if k.releases == 0 { // otherwise the release has the next turn, and says whether the owner held
			k.phase, k.until = leaving, watchdog.Now()
			st.taskLocked(k.leave)
		}
	case reply.Status == store.Granted && !k.holdsLocked():
		return false
	case reply.Status == store.Granted && st.ending: // Close may have counted the held keys before
		*reply = store.AcquireReply{Err: store.ErrClosed}
	case k.phase == leaving:
	case k.node == "" && !k.uncertain:
		k.forgetLocked()
	case k.session.left.Load() && k.phase != holding: // Close came too early to see it
		k.until = watchdog.Now()
		st.taskLocked(k.leave)
	case k.phase == asking: // it failed on the way
		k.endAtLocked(watchdog.Now().Add(max(r.WaiterTTL, retryIn)))
	}
	return true
}
