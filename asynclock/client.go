// SPDX-License-Identifier: Apache-2.0

package asynclock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/asynclock/internal/machine"
	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/internal/batch"
	"github.com/asynclock/asynclock-go/internal/failure"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/watchdog"
)

// A Client takes and keeps locks in one [Store]. It is safe for concurrent use. A process needs
// only one client per store: goroutines that lock through the same client hand keys to each other
// without the store.
//
// Make a client with [New]; [Client.Close] ends it.
type Client struct {
	session  store.Session
	features store.Features
	spelling store.SpellingSession // nil: no two keys are one lock
	settings clientSettings

	seed   maphash.Seed
	shards [shards]shard

	watchdog *watchdog.Watchdog
	acquires *batch.Queue[*machine.Acquire]
	renewals *batch.Queue[*machine.Renewal]
	releases *batch.Queue[*releaseCall]
	stops    *batch.Queue[func() bool]
	log      *asynclog.Log
	limits   limiter
	leaks    *leakDetector // nil unless WithLeakDetection says so
	hooks    *hooks        // nil unless WithHooks has given some
	overdue  overdueRenewals
	trips    tripMeter
	outages  outages
	deaf     deafness

	several      severalCounts // of leases; shards have those of one key
	renewalCalls atomic.Int64
	unconfirmed  atomic.Int64 // releases
	foundLost    atomic.Int64 // releases

	// background is the context of calls that no caller waits for. It ends when Close has finished.
	background context.Context //nolint:containedctx // it bounds goroutines, not a call
	stop       context.CancelFunc
	closeStore func() error // does nothing if the store is not the client's

	lastNote  atomic.Int64 // numbers the notes that leases write
	observers observers

	gatherings gatherings

	refused sync.Once // logs only once that the store can't support retention

	closing  closingFlag
	inUse    atomic.Int64  // keys; Close waits until there are none
	underWay atomic.Int64  // releases; Close waits for them briefly
	unused   chan struct{} // has room for one: one of the two counts came to 0 while closing
	closed   chan struct{} // closed when Close has finished
}

// A shard is a part of the client's keys, under one mutex. Calls to a store, to a caller's function
// or to a logger are never made under this mutex.
type shard struct {
	client  *Client
	mu      sync.Mutex
	number  byte
	keys    map[string]*keyState
	owners  map[string]*keyState       // by the owner id in play
	leaving map[string]int             // how many releases of the key leave; nil: none ever did
	watches map[<-chan struct{}]*watch // by the context's Done channel
	counts  shardCounts
}

// Bounds of batches. One call to the store carries at most largestBatch requests. They are few
// enough for a server that takes milliseconds for each request to answer within the call's timeout.
// In one lane, at most callsPerLane calls of one kind are under way. Two are enough to keep one
// slow call from holding up the next.
const (
	largestBatch = 256
	callsPerLane = 2
)

// A closingFlag says that Close was called.
type closingFlag struct {
	atomic.Bool

	begun chan struct{} // closed when the flag is set
}

// Swap sets the flag and returns what it was.
func (f *closingFlag) Swap(closing bool) (was bool) {
	if was = f.Bool.Swap(closing); !was && closing {
		close(f.begun)
	}
	return was
}

// New makes a client of the store, with defaults for all its acquisitions. It fails with
// [ErrInvalidOption] for a nil store or a bad option. It wraps the error of the store's Open.
func New(store Store, options ...ClientOption) (*Client, error) {
	if v := reflect.ValueOf(store); store == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("%w: nil store", ErrInvalidOption)
	}
	settings, err := newSettings(options)
	closeStore, closeErr := settings.closerOf(store)
	if err := cmp.Or(err, closeErr); err != nil {
		return nil, errors.Join(err, closeStore())
	}
	c := newClient(settings)
	c.closeStore = closeStore
	if settings.detectsLeaks(store) {
		c.leaks = newLeakDetector(c)
	}
	session, err := store.Open(uuid.NewString(), c.onEvent)
	if err != nil {
		c.stop()
		return nil, errors.Join(failure.Join(errJoinStore, err), closeStore())
	}
	c.start(session, store.Features())
	if err := c.makeHooks(); err != nil {
		return nil, err
	}
	return c, nil
}

// makeHooks makes the hooks of the client. If one can't be made, the client is closed, and so is one that nobody gets because
// of a panic.
func (c *Client) makeHooks() (err error) {
	if c.hooks == nil {
		return nil
	}
	made := false
	defer func() {
		if !made {
			ctx, cancel := context.WithCancel(context.Background())
			cancel() // it may hold keys, for which nobody will call Unlock
			_ = c.Close(ctx)
		}
	}()
	err = c.hooks.makeFor(c, c.settings.hooks)
	made = err == nil
	return err
}

var errJoinStore = errors.New("asynclock: join the store")

// newClient makes a client that has no session yet.
func newClient(settings clientSettings) *Client {
	c := &Client{
		settings: settings,
		log:      settings.log(),
		hooks:    newHooks(len(settings.hooks)),
		seed:     maphash.MakeSeed(),
		unused:   make(chan struct{}, 1),
		closed:   make(chan struct{}),
	}
	c.closing.begun = make(chan struct{})
	for i := range c.shards {
		c.shards[i] = shard{
			client: c,
			number: byte(i),
			keys:   make(map[string]*keyState),
			owners: make(map[string]*keyState),

			watches: make(map[<-chan struct{}]*watch),
		}
	}
	c.background, c.stop = context.WithCancel(context.Background())
	return c
}

// start begins the client's work, with its session.
func (c *Client) start(session store.Session, features store.Features) {
	c.session, c.features = session, features
	c.spelling, _ = session.(store.SpellingSession)
	c.retentionFor(&c.settings.lock)
	c.settings.rlock = c.settings.lock.forReaders()
	c.acquires = batch.New(largestBatch, callsPerLane, 0, c.sendAcquires)
	c.renewals = batch.New(lateRenewals, 1, gathering, c.sendRenewals)
	c.releases = batch.New(largestBatch, callsPerLane, 0, c.sendReleases)
	c.stops = batch.New(largestBatch, 1, 0, c.stopWatches)
	c.gatherings.of = make(map[gatheringID]*sharedGathering)
	c.watchdog = watchdog.New() // last: from here on there is a goroutine to stop
}

// shardOf returns the shard that keeps the key.
func (c *Client) shardOf(key string) *shard {
	return &c.shards[maphash.String(c.seed, key)%shards]
}

// byOwner returns the state of the key that this owner id is used for, with its shard locked. It
// returns nil, with nothing locked, if there is none.
func (c *Client) byOwner(owner string) *keyState {
	number, ok := ownerShard(owner)
	if !ok {
		return nil
	}
	sh := &c.shards[number]
	sh.mu.Lock()
	if s := sh.owners[owner]; s != nil {
		return s
	}
	sh.mu.Unlock()
	return nil
}

// defaultsOf returns the settings of a waiter without options.
func (c *Client) defaultsOf(w *waiter) *lockSettings {
	switch {
	case w.each != nil:
		return w.each.settings
	case w.mode == Shared:
		return &c.settings.rlock
	case w.mode == Permits:
		return &w.semaphore.settings
	default:
		return &c.settings.lock
	}
}

// lockSettings returns the settings of an acquisition with these options.
func (c *Client) lockSettings(defaults *lockSettings, options []LockOption) (*lockSettings, error) {
	if defaults.Mode == Shared {
		if err := c.features.Check(store.Share{Mode: Shared}, 0); err != nil {
			return nil, err
		}
	}
	if len(options) == 0 {
		return defaults, nil
	}
	s, err := defaults.with(options)
	if err != nil {
		return nil, err
	}
	if s.Mode == Permits {
		s.Retention = 0
	}
	c.retentionFor(&s)
	return &s, nil
}

// TTL returns the TTL of the client's locks, if no [WithTTL] of a call says another.
func (c *Client) TTL() time.Duration {
	if !c.isUsable() {
		return DefaultTTL
	}
	return c.settings.lock.TTL
}

// enter and leave count the keys that Close has to wait for.
func (c *Client) enter() { c.inUse.Add(1) }

func (c *Client) leave() { c.leaveOf(&c.inUse) }

func (c *Client) leaveOf(n *atomic.Int64) {
	if n.Add(-1) == 0 && c.closing.Load() {
		select {
		case c.unused <- struct{}{}:
		default:
		}
	}
}
