// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/internal/asynclog"
	"github.com/asynclock/asynclock-go/store"
)

const (
	// DefaultRoot is where Spring Integration's ZookeeperLockRegistry keeps its locks by default.
	DefaultRoot = "/SpringIntegration-LockRegistry"
	// DefaultSessionTimeout is the timeout that the store requests without [WithSessionTimeout]. It
	// equals the default TTL of clients.
	DefaultSessionTimeout = store.DefaultTTL
	// DefaultTickTime is the server's tick that the store assumes without [WithTickTime]. It is the
	// default of ZooKeeper itself.
	DefaultTickTime = 3 * time.Second

	minSessionTimeout = 100 * time.Millisecond
	maxSessionTimeout = time.Hour
)

// An Option configures a [Store], in [Open].
type Option interface {
	apply(*settings) error
}

type option func(*settings) error

func (o option) apply(s *settings) error { return o(s) }

type settings struct {
	names          names
	sessionTimeout time.Duration
	tickTime       time.Duration
	shortTTLs      bool
	revocation     bool
	readWrite      func(key string) bool // nil: no key has readers
	user, password string
	digest         bool
	acl            []zk.ACL
	tls            *tls.Config
	dial           func(ctx context.Context, network, address string) (net.Conn, error)
	log            asynclog.Choice
}

func newSettings(opts []Option) (settings, error) {
	s := settings{
		names:          names{root: DefaultRoot},
		sessionTimeout: DefaultSessionTimeout,
		tickTime:       DefaultTickTime,
		dial:           new(net.Dialer).DialContext,
	}
	for _, o := range opts {
		if o == nil {
			return s, fmt.Errorf("%w: nil option", store.ErrInvalidOption)
		}
		if err := o.apply(&s); err != nil {
			return s, err
		}
	}
	if s.acl == nil {
		s.acl = zk.WorldACL(zk.PermAll)
		if s.digest {
			s.acl = zk.AuthACL(zk.PermAll)
		}
	}
	return s, nil
}

// WithRoot sets the path below which the locks are: the second argument of the constructor of a
// ZookeeperLockRegistry, without a slash at its end. Default [DefaultRoot].
func WithRoot(root string) Option {
	return option(func(s *settings) error {
		if !validPath(root) {
			return fmt.Errorf("%w: root %q is no path of ZooKeeper's", store.ErrInvalidOption, root)
		}
		s.names.root = root
		return nil
	})
}

// WithKeyToPath sets where the lock of each key is, like a KeyToPathStrategy in Java. pathTo
// returns the whole path; different keys must have different paths. List searches below the root
// and calls keyAt for the way back, which is not ok for paths that are no key's lock. Default:
// root, slash, key.
func WithKeyToPath(pathTo func(key string) string, keyAt func(path string) (key string, ok bool)) Option {
	return option(func(s *settings) error {
		if pathTo == nil || keyAt == nil {
			return fmt.Errorf("%w: nil function", store.ErrInvalidOption)
		}
		s.names.pathTo, s.names.keyAt = pathTo, keyAt
		return nil
	})
}

// WithSessionTimeout sets the session timeout to request from the server, from 100 ms to an hour.
// The server applies its own limits (2 to 20 ticks, unless configured) and decides;
// [Store.SessionTimeout] returns its decision. The keys of a dead client stay taken for so long. A
// client that is cut off loses its leases earlier. Default [DefaultSessionTimeout].
func WithSessionTimeout(d time.Duration) Option {
	return option(func(s *settings) error {
		if d < minSessionTimeout || d > maxSessionTimeout {
			return fmt.Errorf("%w: session timeout %v is outside %v to %v", store.ErrInvalidOption, d, minSessionTimeout, maxSessionTimeout)
		}
		s.sessionTimeout = d
		return nil
	})
}

// WithTickTime sets the servers' tickTime, which clients can't request from them. In an ensemble,
// the leader learns up to half a tick late that a client is alive. The store trusts a session for
// so much less. A value below the true one risks that a lease outlives its session; a value above
// it costs trust. Default [DefaultTickTime].
func WithTickTime(d time.Duration) Option {
	return option(func(s *settings) error {
		if d < time.Millisecond || d > maxSessionTimeout {
			return fmt.Errorf("%w: tick time %v is outside %v to %v", store.ErrInvalidOption, d, time.Millisecond, maxSessionTimeout)
		}
		s.tickTime = d
		return nil
	})
}

// WithShortTTLs accepts TTLs below the session timeout, which are otherwise refused. A short TTL
// holds only for a client that runs and is connected, because the store itself ends leases that are
// not renewed. A client that is killed or cut off keeps its keys until the server ends its session.
func WithShortTTLs() Option {
	return option(func(s *settings) error {
		s.shortTTLs = true
		return nil
	})
}

// WithRevocation makes leases end with asynclock.ErrForced when somebody requests it by Curator's
// Revoker.attemptRevoke. As in Java, the key stays with the holder until the holder unlocks it or
// its TTL ends. Without the option such requests are ignored.
func WithRevocation() Option {
	return option(func(s *settings) error {
		s.revocation = true
		return nil
	})
}

// WithReadWriteKeys gives readers to the keys for which has returns true: their nodes are those of
// Curator's InterProcessReadWriteLock, where Lock is the writer. For all other keys, RLock answers
// asynclock.ErrUnsupported. Has must always return the same for a key, in all programs: the nodes of
// InterProcessMutex and of InterProcessReadWriteLock don't exclude each other. If this store finds
// both on one path, it answers asynclock.ErrForeignData. Default: no key has readers.
func WithReadWriteKeys(has func(key string) bool) Option {
	return option(func(s *settings) error {
		if has == nil {
			return fmt.Errorf("%w: nil function", store.ErrInvalidOption)
		}
		s.readWrite = has
		return nil
	})
}

// WithDigest authenticates by ZooKeeper's digest scheme. Unless [WithACL] is set, nodes that the
// store creates are then for that user only. The password is sent unencrypted: use TLS.
func WithDigest(user, password string) Option {
	return option(func(s *settings) error {
		if user == "" || strings.Contains(user, ":") {
			return fmt.Errorf("%w: user must not be empty or contain a colon", store.ErrInvalidOption)
		}
		s.user, s.password, s.digest = user, password, true
		return nil
	})
}

// WithACL sets the access control list of every node that the store creates. Default: everybody may
// do everything, as in Java. After [WithDigest], the default is that user only.
func WithACL(acl []zk.ACL) Option {
	return option(func(s *settings) error {
		if len(acl) == 0 {
			return fmt.Errorf("%w: empty access control list", store.ErrInvalidOption)
		}
		s.acl = acl
		return nil
	})
}

// WithTLS connects by TLS, to the servers' secureClientPort. If the configuration names no server,
// the certificate has to be for the host in the address. Default: no encryption.
func WithTLS(config *tls.Config) Option {
	return option(func(s *settings) error {
		if config == nil {
			return fmt.Errorf("%w: nil TLS configuration", store.ErrInvalidOption)
		}
		s.tls = config
		return nil
	})
}

// WithDialer sets the function that makes connections, without TLS. Default: a zero net.Dialer.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return option(func(s *settings) error {
		if dial == nil {
			return fmt.Errorf("%w: nil dialer", store.ErrInvalidOption)
		}
		s.dial = dial
		return nil
	})
}

// WithLogger sets where the store logs what an operator may need: a lost session, a node that could
// not be removed, and, at debug level, the client library's messages about connections. Owner ids
// never appear in the log. A goroutine of its own calls the handler, so a slow or blocking handler
// delays nothing. At most 1000 records wait for the handler; further records are dropped.
//
// Default: warnings and errors go to slog.Default(), whichever it is at that moment. Each message
// is written once a minute at most. [WithoutLogger] silences the store.
func WithLogger(logger *slog.Logger) Option {
	return option(func(s *settings) error { return s.log.Logger(logger) })
}

// WithoutLogger silences the store: nothing is written, not even warnings.
func WithoutLogger() Option {
	return option(func(s *settings) error { return s.log.Nowhere() })
}
