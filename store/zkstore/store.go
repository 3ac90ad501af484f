// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/internal/tombstone"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Store has the locks below one root of one ZooKeeper ensemble. Its clients share one session. It
// is safe for concurrent use. Make one with [Open].
type Store struct {
	settings settings
	log      *asynclog.Log
	conn     *zk.Conn
	hosts    hosts
	lines    lines
	health   sessionHealth
	watchdog *watchdog.Watchdog // ends lock nodes that were not extended in time

	closed   atomic.Bool
	stopping chan struct{}  // closed by Close
	tasks    sync.WaitGroup // goroutines; Close waits for them

	mu        sync.Mutex
	ending    bool                    // no more tasks are begun
	lockNodes map[string]*lockNode    // by owner
	nodes     map[string]*lockNode    // by path
	watches   map[string]*watch       // by path
	behind    map[string][]*lockNode  // by the path of the watched node before theirs
	counted   map[string][]*lockNode  // holders, by the path of a lock whose children are watched
	withdrawn tombstone.Owners        // owners that will never be granted anything
	ends      endings                 // of holdings, lately
	parents   atomic.Pointer[flavour] // how locks are made
}

var _ store.Store = (*Store)(nil)

// patience is how long Open waits for a session.
const patience = 10 * time.Second

// Open connects to an ensemble, whose servers are given as host:port, and waits at most ten seconds
// for a session. Each connection looks up the host's name again. A path after the port, which other
// clients use as a root, is refused: use [WithRoot].
//
// The errors are those of asynclock: ErrInvalidOption, ErrUnreachable or ErrDenied.
func Open(servers []string, opts ...Option) (*Store, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	if err := checkServers(servers); err != nil {
		return nil, err
	}
	st := &Store{
		settings:  s,
		log:       s.log.Open(),
		health:    sessionHealth{lag: s.tickTime / 2},
		stopping:  make(chan struct{}),
		lockNodes: make(map[string]*lockNode),
		nodes:     make(map[string]*lockNode),
		watches:   make(map[string]*watch),
		behind:    make(map[string][]*lockNode),
		counted:   make(map[string][]*lockNode),
	}
	st.parents.Store(&container)
	up := make(chan struct{}, 1)
	conn, events, err := zk.Connect(servers, s.sessionTimeout,
		zk.WithHostProvider(&st.hosts), zk.WithDialer(st.dial), zk.WithLogInfo(false), zk.WithLogger(chatter{st.log}),
		zk.WithEventCallback(func(e zk.Event) {
			if e.Type == zk.EventSession && e.State == zk.StateHasSession {
				select {
				case up <- struct{}{}:
				default:
				}
			}
			st.onEvent(e)
		}))
	if err != nil {
		st.log.Close()
		return nil, fmt.Errorf("zkstore: open: %w: %w", store.ErrUnreachable, err)
	}
	st.conn = conn
	st.watchdog = watchdog.New()
	st.tasks.Go(func() { // ends when the connection is closed for good
		for range events { // the callback has seen them
		}
	})
	if err := st.begin(up); err != nil {
		st.Close()
		return nil, fmt.Errorf("zkstore: open: %w", err)
	}
	st.tasks.Go(st.beat)
	return st, nil
}

// begin waits for the session.
func (st *Store) begin(up <-chan struct{}) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-up:
	case <-limit.C:
		if err := st.lines.lastFailure(); err != nil {
			return fmt.Errorf("%w: no server has given a session in %v: %w", store.ErrUnreachable, patience, err)
		}
		return fmt.Errorf("%w: no server has given a session in %v", store.ErrUnreachable, patience)
	}
	if !st.settings.digest {
		return nil
	}
	credentials := []byte(st.settings.user + ":" + st.settings.password)
	return st.failure(st.conn.AddAuth("digest", credentials), false)
}

// beat sends the server a request from time to time, so that the session's health is known: a read
// while the store is idle, and otherwise a write to a quorum.
func (st *Store) beat() {
	for {
		_, timeout := st.health.now()
		pause := time.NewTimer(timeout / beatsPerSession)
		select {
		case <-st.stopping:
			pause.Stop()
			return
		case <-pause.C:
		}
		// A failure needs no handling, because the health then gets old.
		if st.idle() {
			_ = st.health.ask(false, st.glance)
		} else {
			_ = st.confirm()
		}
	}
}

const beatsPerSession = 10

// glance is a request that every server answers by itself.
func (st *Store) glance() error {
	_, _, err := st.conn.Exists(st.settings.names.root)
	return err
}

// confirm is a write that changes nothing. The answer that the root does not exist serves as well.
func (st *Store) confirm() error {
	err := st.health.ask(true, func() error {
		_, err := st.conn.Multi(&zk.CheckVersionRequest{Path: st.settings.names.root, Version: -1})
		return err
	})
	if answered(err) {
		return nil
	}
	return st.failure(err, false)
}

func (st *Store) idle() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.lockNodes) == 0
}

// Close ends the session, and so all holdings of the store's clients: close the clients first.
// Closed clients may have left holdings whose TTL has not ended yet, because somebody may be at
// work. In this case the session is left to expire instead. From now on the store and its sessions
// answer with asynclock.ErrClosed. Close waits at most a second for the log handler.
func (st *Store) Close() {
	if st.conn == nil {
		return
	}
	st.mu.Lock()
	again := st.ending
	st.ending = true
	held := false
	for _, k := range st.nodes {
		held = held || (k.phase == holding || k.phase == kept) && watchdog.Now() < k.until
	}
	st.mu.Unlock()
	if again {
		return
	}
	st.closed.Store(true)
	close(st.stopping)
	st.watchdog.Close()
	if held {
		st.lines.abandon()
	}
	st.conn.Close()
	st.lines.abandon() // a server that has not answered by now need not answer
	st.tasks.Wait()
	st.log.Close()
}

// task runs f on a goroutine, unless the store is closed, and reports whether it does. The goroutine
// ends when f ends, which waits only for the server. Close waits for the goroutine.
func (st *Store) task(f func()) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.taskLocked(f)
}

func (st *Store) taskLocked(f func()) bool {
	if st.ending {
		return false
	}
	st.tasks.Go(f)
	return true
}

// Features says that the store has tokens and queues, kept by sessions. It has readers if
// [WithReadWriteKeys] is set.
func (st *Store) Features() store.Features {
	return store.Features{Name: "zookeeper", Tokens: true, FIFO: true, Sessions: true, Shared: st.settings.readWrite != nil}
}

// SessionTimeout returns the server's latest value: how long it keeps the nodes of a silent client.
func (st *Store) SessionTimeout() time.Duration {
	_, timeout := st.health.now()
	return timeout
}

// Open connects one client. It sends nothing to the server.
func (st *Store) Open(id string, events func(store.Event)) (store.Session, error) {
	switch {
	case st.conn == nil:
		return nil, fmt.Errorf("%w: zkstore: a Store that Open did not make", store.ErrInvalidOption)
	case id == "" || events == nil:
		return nil, fmt.Errorf("%w: a session needs an id and a receiver of events", store.ErrInvalidOption)
	case st.closed.Load():
		return nil, store.ErrClosed
	}
	return &session{store: st, events: events}, nil
}

// A flavour is a way to make the nodes above owners' nodes.
type flavour struct{ create func(*Store, string) error }

var (
	// container: the server removes the node some time after its last child.
	container = flavour{func(st *Store, path string) error {
		_, err := st.conn.CreateContainer(path, nil, zk.FlagContainer, st.settings.acl)
		return err
	}}
	// persistent: the node stays for ever. Servers before 3.5 have nothing else.
	persistent = flavour{func(st *Store, path string) error {
		_, err := st.conn.Create(path, nil, zk.FlagPersistent, st.settings.acl)
		return err
	}}
)

// makeLock makes the node of a lock, after the missing nodes above it. It does not touch the
// existing ones, because they may belong to somebody else.
func (st *Store) makeLock(path string) error {
	err := st.makeParent(path)
	above := path[:strings.LastIndexByte(path, '/')]
	if above == "" || !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if err := st.makeLock(above); err != nil {
		return err
	}
	return st.makeParent(path)
}

// makeParent makes one node, if it is missing.
func (st *Store) makeParent(path string) error {
	kind := st.parents.Load()
	err := kind.create(st, path)
	if kind == &container && unsupported(err) {
		if err = persistent.create(st, path); err == nil || errors.Is(err, zk.ErrNodeExists) {
			st.parents.Store(&persistent)
		}
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// unsupported reports whether a server does not know the request. The driver has no name for that
// error, only the number in its text.
func unsupported(err error) bool { return err != nil && err.Error() == "unknown error: -6" }

// chatter receives the client library's log.
type chatter struct{ log *asynclog.Log }

// Printf logs one line.
func (c chatter) Printf(format string, args ...any) {
	c.log.Add(slog.LevelDebug, "zkstore: client library: "+fmt.Sprintf(format, args...))
}
