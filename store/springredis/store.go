// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// A Store is the locks of one registry key in one Redis deployment. It shares
// them with every RedisLockRegistry and every other Store of that key there.
type Store struct {
	conn     *redisconn.Conn
	names    names
	settings settings
	log      *asynclog.Log
	deletion deletion
}

var _ store.Store = (*Store)(nil)

// Open connects to Redis with two clients of its own, one for commands and one
// for messages, which are set up for locks as redisstore.Open says. A single server may get
// the third connection, too. The registry
// key is the second argument of the RedisLockRegistry's constructor, and
// option.SelectDB has to be the database of the Java side.
//
// The registry key is UTF-8 of 1 to 512 bytes and begins neither with
// "asynclock.spring" nor with "pubsub-probe:". The errors are those of asynclock:
// ErrInvalidOption, ErrUnreachable or ErrDenied.
func Open(option rueidis.ClientOption, registryKey string, opts ...Option) (*Store, error) {
	st, err := newStore(registryKey, opts)
	if err != nil {
		return nil, err
	}
	if st.conn, err = redisconn.Open(option); err != nil {
		return nil, fmt.Errorf("springredis: open: %w", err)
	}
	return st, nil
}

// OpenURL is Open for a server that a URL names, as redisstore.OpenURL says. The database in it,
// as in redis://host:6379/1, has to be that of the Java side.
func OpenURL(url, registryKey string, opts ...Option) (*Store, error) {
	option, err := redisconn.ParseURL(url)
	if err != nil {
		return nil, err
	}
	return Open(option, registryKey, opts...)
}

// New uses the application's own client, which [Store.Close] leaves open. redisstore.New says
// what this saves and costs.
func New(client rueidis.Client, registryKey string, opts ...Option) (*Store, error) {
	st, err := newStore(registryKey, opts)
	if err != nil {
		return nil, err
	}
	if st.conn, err = redisconn.Share(client); err != nil {
		return nil, err
	}
	return st, nil
}

func newStore(registryKey string, opts []Option) (*Store, error) {
	if err := checkRegistryKey(registryKey); err != nil {
		return nil, err
	}
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	return &Store{names: newNames(registryKey), settings: s, log: s.log.Open()}, nil
}

// Close closes the connections that [Open] opened. A client that was given to [New] stays
// open. From now on the store and its sessions answer with asynclock.ErrClosed. Close the
// asynclock.Clients first: clients of a closed store can't give back the keys that they hold.
// Close waits a second at most for the log handler.
func (st *Store) Close() {
	if st.conn != nil && st.conn.Close() {
		st.log.Close()
	}
}

// Features are tokens, and no queue. The package comment says what the tokens are
// worth where Java holds the key in between.
func (st *Store) Features() store.Features { return features }

var features = store.Features{Name: "spring-redis", Tokens: true}

// Open connects a client. It sends nothing and does not wait; in mode
// [PubSubLock] it starts to subscribe. The id must be printable ASCII without
// spaces, of at most 128 bytes.
func (st *Store) Open(id string, events func(store.Event)) (store.Session, error) {
	if st.conn == nil {
		return nil, errZero
	}
	if err := redisconn.CheckJoin(id, events, st.conn.Closed()); err != nil {
		return nil, err
	}
	return newSession(st, id, events), nil
}

// errReply is an answer that our scripts don't give: something between us and
// the server made it up.
var errReply = errors.New("springredis: unexpected reply")

func foreign(redisKey string) error {
	return fmt.Errorf("%w: %q", store.ErrForeignData, redisKey)
}

// errZero is the error of a Store that is only declared.
var errZero = fmt.Errorf("%w: springredis: a Store that neither Open nor New made", store.ErrInvalidOption)
