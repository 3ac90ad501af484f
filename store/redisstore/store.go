// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// A Store is the locks of one Redis deployment, under one prefix. Stores with the same prefix
// share their locks, whatever client they use, and whether or not that client knows that the
// deployment is a Cluster.
//
// A store of [Open] for a single server takes some 0.5 MB and four goroutines until it is closed,
// and each of its clients three goroutines more. It has one goroutine more while its calls follow each
// other closely. In a Cluster it is as much for each node.
type Store struct {
	conn     *connection // nil: nobody made the store
	settings settings
	log      *asynclog.Log

	sightings [buckets]atomic.Pointer[sighting]
	reaches   reaches

	taking  *gathering[store.AcquireRequest, store.AcquireReply]
	leaving *gathering[store.ReleaseRequest, store.ReleaseReply]
	traffic traffic
	life    context.Context //nolint:containedctx // of the scripts of taking and leaving; ends with Close
	end     context.CancelFunc

	unsharded atomic.Bool // the cluster has shown that it has no sharded pub-sub
	slotted   atomic.Bool // the server was taken for a standalone one, and has shown to be a cluster's node
	silence   silence
	hub       hub
	activity  activity // of the server

	hidden    [buckets]atomic.Pointer[time.Time] // see hiding
	unguarded atomic.Bool                        // the log has said so
	asked     atomic.Bool                        // by warnIfEvicted
	quiet     atomic.Pointer[time.Time]          // until when the log need not say that nothing is granted
	opened    sync.Map                           // the histories whose grace somebody has ended, as the log has said
}

var _ store.Store = (*Store)(nil)

// Open connects to Redis with two clients of its own, one for commands and one
// for messages, so that nothing else delays a renewal or a message. A single server gets
// a third connection when calls follow each other closely: a caller that is alone then need
// not wait for the goroutines of a client. There is none if option has an AuthCredentialsFn,
// DisableAutoPipelining or a PipelineMultiplex. The clients are set
// up for locks where option leaves the choice: one connection per server and
// client, always pipelined, a dead server noticed after 3 s. Without a Dialer.Timeout and a
// dial function, a dial waits for a second for an address that says nothing. Client-side
// caching and DisableTCPNoDelay are off in any case; a Sentinel client asks the sentinels every
// 5 s besides listening to them.
//
// Sentinels are spoken to with TLSConfig, as the servers are, unless option.Sentinel has a TLSConfig of its own. For
// sentinels without TLS, whose servers have it, a dial function has to decide by the address.
//
// Commands never go to replicas, whatever option says. The errors are those of
// asynclock: ErrInvalidOption, ErrUnreachable or ErrDenied. With [WithLazyDial] the servers may be down.
func Open(option rueidis.ClientOption, opts ...Option) (*Store, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	if s.lazy {
		driver, err := newLazyDriver(option)
		if err != nil {
			return nil, err
		}
		return newStore(driver, s), nil
	}
	conn, err := redisconn.Open(option)
	if err != nil {
		return nil, fmt.Errorf("redisstore: open: %w", err)
	}
	return newStore(rueidisDriver{conn}, s), nil
}

// OpenURL is Open for a server that a URL names. Special characters in user and password are
// percent-encoded:
//
//	redis://user:password@host:6379/0                       one server; rediss:// for TLS
//	redis://host1:26379?addr=host2:26379&master_set=main    Sentinel
//	redis://host1:6379?addr=host2:6379&addr=host3:6379      Cluster
//	unix:///run/redis/redis.sock                            a socket
//
// The parameters are those of rueidis.ParseURL, and three more. sentinel_username and sentinel_password are
// the user of the sentinels, who is not that of the servers. server_name is the name in the certificates. Without
// it each sentinel, and each server behind sentinels, is known by its own address, and otherwise all by the
// first host.
//
// A URL with other parameters, or with an addr without a port, is refused. The error for a bad URL is
// ErrInvalidOption, and quotes no part of it, because that part may be a password.
func OpenURL(url string, opts ...Option) (*Store, error) {
	option, err := redisconn.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return Open(option, opts...)
}

// New uses the application's own client, which [Store.Close] leaves open. That
// saves up to three connections per server and costs:
//
//   - A caller that is alone waits for goroutines of rueidis. Open has a connection for it.
//   - Renewals and messages wait behind everything else that the client sends and receives.
//     Delays beyond a third of the TTL lose leases.
//   - Each call takes a goroutine of its own, so that it ends with its context. With the
//     clients of Open this is necessary only for a Cluster or with Sentinel.
//   - With several connections per server, as is rueidis' default, the commands
//     of one client may overtake each other; that is safe and costs round trips.
//   - Without AlwaysPipelining, a call whose context ends may close the
//     connection that it shares with others.
//   - With a ConnLifetime, a command that is under way when a connection's lifetime ends may
//     be sent twice, in a failover to two servers. Open sets no ConnLifetime.
//   - Scripts and subscriptions must not go to replicas; see
//     rueidis.ClientOption.SendToReplicas.
//
// New sends nothing. Its only error is asynclock's ErrInvalidOption, also for a nil client.
func New(client rueidis.Client, opts ...Option) (*Store, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	conn, err := redisconn.Share(client)
	if err != nil {
		return nil, err
	}
	return newStore(rueidisDriver{conn}, s), nil
}

func newStore(driver redisdriver.Driver, s settings) *Store {
	st := &Store{conn: &connection{Driver: driver}, settings: s, log: s.log.Open(), activity: activity{began: time.Now()}}
	st.life, st.end = context.WithCancel(context.Background())
	st.taking, st.leaving = newGathering(st, st.takes()), newGathering(st, st.leaves())
	return st
}

// Close closes the connections that [Open] opened, and the driver of [NewWith]. A client that was
// given to [New] stays open. From now on the store and its sessions answer with asynclock.ErrClosed. Close the
// asynclock.Clients first: clients of a closed store can't give back the keys that they hold.
// Close waits a second at most for the log handler.
func (st *Store) Close() {
	if st.conn != nil && st.conn.Close() {
		st.end()
		st.taking.queue.Close()
		st.leaving.queue.Close()
		st.log.Close()
	}
}

// Features are tokens, a queue, shares, notes, and that a holder can hear who wants its key.
func (st *Store) Features() store.Features { return features }

// Open connects a client. It sends nothing and does not wait: whether messages
// come through shows by itself. The id must be printable ASCII without spaces,
// of at most 128 bytes.
func (st *Store) Open(id string, events func(store.Event)) (store.Session, error) {
	if st.conn == nil {
		return nil, errZero
	}
	if err := redisconn.CheckJoin(id, events, st.conn.Closed()); err != nil {
		return nil, err
	}
	return newSession(st, id, events), nil
}

// errZero is the error of a Store that is only declared.
var errZero = fmt.Errorf("%w: redisstore: a Store that neither Open nor New made", store.ErrInvalidOption)
