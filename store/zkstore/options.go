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

	"github.com/asynclock/asynclock-go/store"
)

const (
	// DefaultRoot is where Spring Integration's ZookeeperLockRegistry keeps its
	// locks unless told otherwise.
	DefaultRoot = "/SpringIntegration-LockRegistry"
	// DefaultSessionTimeout is what the store asks the server for without
	// [WithSessionTimeout]: as long as the TTL that clients have by default.
	DefaultSessionTimeout = store.DefaultTTL
	// DefaultTickTime is what the store takes for the server's tick without
	// [WithTickTime]: what ZooKeeper itself does if its configuration is silent.
	DefaultTickTime = 3 * time.Second

	minSessionTimeout = 100 * time.Millisecond
	maxSessionTimeout = time.Hour
)

// An Option configures a [Store], in [Open].
type Option func(*settings) error

type settings struct {
	names          names
	sessionTimeout time.Duration
	tickTime       time.Duration
	shortTTLs      bool
	revocation     bool
	user, password string
	digest         bool
	acl            []zk.ACL
	tls            *tls.Config
	dial           func(ctx context.Context, network, address string) (net.Conn, error)
	logger         *slog.Logger // nil: nothing is written
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
			return s, fmt.Errorf("%w: nil option", store.ErrBadOption)
		}
		if err := o(&s); err != nil {
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

// WithRoot sets the path below which the locks are: the second argument of the
// constructor of a ZookeeperLockRegistry, without a slash at its end. Default
// [DefaultRoot].
func WithRoot(root string) Option {
	return func(s *settings) error {
		if !validPath(root) {
			return fmt.Errorf("%w: root %q is no path of ZooKeeper's", store.ErrBadOption, root)
		}
		s.names.root = root
		return nil
	}
}

// WithKeyToPath sets where the lock of each key is, as a KeyToPathStrategy does in
// Java; pathTo gives the whole path, and different keys must have different ones.
// keyAt is the way back, for List, which looks below the root: not ok for paths
// that are no key's lock. Default: root, slash, key.
func WithKeyToPath(pathTo func(key string) string, keyAt func(path string) (key string, ok bool)) Option {
	return func(s *settings) error {
		if pathTo == nil || keyAt == nil {
			return fmt.Errorf("%w: nil function", store.ErrBadOption)
		}
		s.names.pathTo, s.names.keyAt = pathTo, keyAt
		return nil
	}
}

// WithSessionTimeout sets the session timeout that the server is asked for, from
// 100 ms to an hour. The server has limits of its own (2 to 20 ticks, unless
// configured) and has the last word; [Store.SessionTimeout] says what it said. A
// client that dies keeps its keys for so long; one that is cut off has lost its
// leases before. Default [DefaultSessionTimeout].
func WithSessionTimeout(d time.Duration) Option {
	return func(s *settings) error {
		if d < minSessionTimeout || d > maxSessionTimeout {
			return fmt.Errorf("%w: session timeout %v is outside %v to %v", store.ErrBadOption, d, minSessionTimeout, maxSessionTimeout)
		}
		s.sessionTimeout = d
		return nil
	}
}

// WithTickTime says what the servers' tickTime is, which clients can't ask them.
// In an ensemble, that a client lives is known to the leader up to half a tick
// late, and the store trusts a session for so much less. Saying less than is true
// risks that a lease outlives its session; saying more costs trust. Default
// [DefaultTickTime].
func WithTickTime(d time.Duration) Option {
	return func(s *settings) error {
		if d < time.Millisecond || d > maxSessionTimeout {
			return fmt.Errorf("%w: tick time %v is outside %v to %v", store.ErrBadOption, d, time.Millisecond, maxSessionTimeout)
		}
		s.tickTime = d
		return nil
	}
}

// WithShortTTLs accepts TTLs below the session timeout, which are refused without
// it. They hold for a client that runs and is connected: the store ends what is
// not renewed. But a client that is killed or cut off keeps its keys until the
// server ends its session.
func WithShortTTLs() Option {
	return func(s *settings) error {
		s.shortTTLs = true
		return nil
	}
}

// WithRevocation makes leases end with asynclock.ErrForced when somebody asks for
// it by Curator's Revoker.attemptRevoke. As in Java the key stays with the holder
// until that unlocks it, or its TTL ends. Without the option nobody listens.
func WithRevocation() Option {
	return func(s *settings) error {
		s.revocation = true
		return nil
	}
}

// WithDigest authenticates by ZooKeeper's digest scheme. Unless [WithACL] says
// otherwise, nodes that the store creates are then for that user only. The
// password goes over the wire as it is: use TLS.
func WithDigest(user, password string) Option {
	return func(s *settings) error {
		if user == "" || strings.Contains(user, ":") {
			return fmt.Errorf("%w: user must not be empty or contain a colon", store.ErrBadOption)
		}
		s.user, s.password, s.digest = user, password, true
		return nil
	}
}

// WithACL sets the access control list of every node that the store creates.
// Default: everybody may do everything, as in Java, or, after [WithDigest], that
// user only.
func WithACL(acl []zk.ACL) Option {
	return func(s *settings) error {
		if len(acl) == 0 {
			return fmt.Errorf("%w: empty access control list", store.ErrBadOption)
		}
		s.acl = acl
		return nil
	}
}

// WithTLS connects by TLS, to the servers' secureClientPort. If the
// configuration names no server, the certificate has to be for the host that is
// connected to. Default: no encryption.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) error {
		if config == nil {
			return fmt.Errorf("%w: nil TLS configuration", store.ErrBadOption)
		}
		s.tls = config
		return nil
	}
}

// WithDialer sets what makes connections, TLS aside. Default: a zero net.Dialer.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(s *settings) error {
		if dial == nil {
			return fmt.Errorf("%w: nil dialer", store.ErrBadOption)
		}
		s.dial = dial
		return nil
	}
}

// WithLogger sets where the store writes what an operator may want to know: that a
// session was lost, that a node could not be removed; and at debug level what
// the client library says about connections. Owner ids never appear in it. A goroutine
// of its own calls the handler, so one that is slow or blocks delays nothing; beyond
// 1000 records that wait for it, more are dropped. Default: nothing is written.
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) error {
		if logger == nil {
			return fmt.Errorf("%w: nil logger", store.ErrBadOption)
		}
		s.logger = logger
		return nil
	}
}
