// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/notes"
	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// A Store is the locks of one registry key in one Redis deployment. It shares
// them with every RedisLockRegistry and every other Store of that key there.
type Store struct {
	commands rueidis.Client // runs the scripts
	inboxes  rueidis.Client // holds the subscriptions; may be the same
	owned    bool           // Close closes both
	names    names
	settings settings
	log      *notes.Log

	closed   atomic.Bool
	deletion deletion
}

var _ asynclock.Store = (*Store)(nil)

// Open connects to Redis with two clients of its own, one for commands and one
// for messages, which are set up for locks as redisstore.Open says. The registry
// key is the second argument of the RedisLockRegistry's constructor, and
// option.SelectDB has to be the database of the Java side.
//
// The registry key is UTF-8 of 1 to 512 bytes and begins neither with
// "asynclock.spring" nor with "pubsub-probe:". The errors are those of asynclock:
// ErrBadOption, ErrUnreachable or ErrDenied.
func Open(option rueidis.ClientOption, registryKey string, opts ...Option) (*Store, error) {
	st, err := newStore(registryKey, opts)
	if err != nil {
		return nil, err
	}
	st.owned = true
	option = redisconn.ForLocks(option)
	if st.commands, err = rueidis.NewClient(option); err != nil {
		return nil, openError(err)
	}
	if st.inboxes, err = rueidis.NewClient(option); err != nil {
		st.commands.Close()
		return nil, openError(err)
	}
	return st, nil
}

func openError(err error) error {
	return fmt.Errorf("springredis: open: %w", redisconn.Classify(err))
}

// New uses the application's own client, which [Store.Close] leaves open. What
// that saves and costs is said at redisstore.New.
func New(client rueidis.Client, registryKey string, opts ...Option) (*Store, error) {
	if client == nil {
		return nil, fmt.Errorf("%w: nil client", asynclock.ErrBadOption)
	}
	st, err := newStore(registryKey, opts)
	if err != nil {
		return nil, err
	}
	st.commands, st.inboxes = client, client
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
	return &Store{names: newNames(registryKey), settings: s, log: notes.New(s.logger)}, nil
}

// Close closes the connections that [Open] opened, if any. Then and after
// [New] alike, the store answers with asynclock.ErrClosed from now on, to its
// sessions too. Close the asynclock.Clients first: those of a closed store can't
// give back what they hold. It waits a second at most for the log handler.
func (st *Store) Close() {
	if st.closed.Swap(true) {
		return
	}
	if st.owned {
		st.commands.Close()
		st.inboxes.Close()
	}
	st.log.Close()
}

// Features are tokens, and no queue. The package comment says what the tokens are
// worth where Java holds the key in between.
func (st *Store) Features() asynclock.Features {
	return asynclock.Features{Tokens: true}
}

// Join connects a client. It sends nothing and does not wait; in mode
// [PubSubLock] it starts to subscribe. The id must be printable ASCII without
// spaces, of at most 128 bytes.
func (st *Store) Join(id string, events func(asynclock.Event)) (asynclock.Session, error) {
	switch {
	case !redisconn.IsField(id):
		return nil, fmt.Errorf("%w: client id must be printable ASCII without spaces", asynclock.ErrBadOption)
	case events == nil:
		return nil, fmt.Errorf("%w: nil events", asynclock.ErrBadOption)
	case st.closed.Load():
		return nil, asynclock.ErrClosed
	}
	return newSession(st, id, events), nil
}

func (st *Store) cluster() bool { return st.commands.Mode() == rueidis.ClientModeCluster }

// failure is the error of a request whose command got no proper answer. It is
// final unless it is one of those that asynclock.Session names.
func (st *Store) failure(err error) error {
	if st.closed.Load() && errors.Is(err, rueidis.ErrClosing) {
		return asynclock.ErrClosed
	}
	return redisconn.Classify(err)
}

// errReply is an answer that our scripts don't give: something between us and
// the server made it up.
var errReply = errors.New("springredis: unexpected reply")

func foreign(redisKey string) error {
	return fmt.Errorf("%w: %q", asynclock.ErrForeignData, redisKey)
}
