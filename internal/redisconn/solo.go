// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A solo is a connection for a caller that is alone. Such a caller writes its commands and reads the
// answers in its own goroutine. On the pipelined connection two goroutines of rueidis would do so,
// and to wake them takes as long as the server does.
//
// It is used by one caller at a time, and only while nobody is on the pipelined connection. Nor may a
// call that was abandoned there be without an answer: it could be overtaken. A large batch does
// not wait for a solo, and a call that was abandoned on a solo may be overtaken. That is safe, as it is
// with New.
//
// It is made when calls follow each other closely for the first time. Nobody reads it between calls. So
// it is trusted only for a while after each use, and then probed before it is used again: the server
// may have closed it.
type solo struct {
	option rueidis.ClientOption
	life   context.Context //nolint:containedctx // of its goroutines; ends with the solo
	end    context.CancelFunc

	mu       sync.Mutex
	state    soloState
	client   rueidis.Client  // nil: none was needed yet
	conn     net.Conn        // of client
	last     time.Time       // when a call ended, or was made elsewhere
	failed   time.Time       // when a probe failed
	ctx      context.Context //nolint:containedctx // of the call under way
	keys     []string        // of the call under way; the caller's
	finished chan struct{}   // closed when that call ends; nil: nobody waits for it
	watched  bool            // a goroutine looks after contexts
}

type soloState int

const (
	soloAway    soloState = iota // has to be probed before it is used
	soloProbed                   // is being probed
	soloFree                     // can be used
	soloInUse                    // a call is under way
	soloIsEnded                  // was closed
)

const (
	// soloTrust is for how long a connection is taken to be alive without a sign. Servers that close
	// idle connections wait for longer.
	soloTrust = time.Second
	// soloPause is how long after a probe that failed the next one begins. A server that has no
	// connections left must not be asked for one with every call.
	soloPause = 5 * time.Second
	// soloCheck is how often the context of the call under way is checked. Most end by their
	// deadline, which the socket has.
	soloCheck = 20 * time.Millisecond
	// soloCommands is how many commands a call may have. The answers are read when all are written. With
	// many commands this costs more than it saves.
	soloCommands = 64
	// soloReads is enough for the answers to some commands.
	soloReads = 4 << 10
	// soloWrites is as much as a server reads at once: some 25 commands.
	soloWrites = 16 << 10
	// soloRing is the RingScaleEachConn. Only rueidis' Close puts something into the ring.
	soloRing = 2
)

// errNoDeadline is the error of a dial to what can't end a call: it ignores deadlines. A tunnel may.
var errNoDeadline = errors.New("redisconn: a connection without deadlines")

// newSolo returns a solo for the server at an address, which option connects to by itself. It returns
// nil for credentials that are refreshed, because rueidis does that on the connection beside a caller.
func newSolo(option rueidis.ClientOption, address string) *solo {
	if option.AuthCredentialsFn != nil {
		return nil
	}
	s := &solo{option: option}
	s.life, s.end = context.WithCancel(context.Background())
	s.option.InitAddress, s.option.ShuffleInit = []string{address}, false
	s.option.AlwaysPipelining, s.option.ForceSingleClient = false, true
	s.option.ReadBufferEachConn, s.option.WriteBufferEachConn = soloReads, soloWrites
	s.option.RingScaleEachConn = soloRing
	// With one of these rueidis would read the connection in a goroutine, also between calls: with the
	// PINGs of KeepAlive from the first one on that meets a call. A caller might then have to dial.
	s.option.OnInvalidations, s.option.Dialer.KeepAlive = nil, -1
	dial := dialerOf(option)
	s.option.DialCtxFn = func(ctx context.Context, address string, dialer *net.Dialer, encryption *tls.Config) (net.Conn, error) {
		original := *dialer
		original.KeepAlive = option.Dialer.KeepAlive
		conn, err := dial(ctx, address, &original, encryption)
		if err != nil {
			return nil, err
		}
		if conn.SetDeadline(time.Time{}) != nil {
			_ = conn.Close()
			return nil, errNoDeadline
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conn = conn
		return conn, nil
	}
	return s
}

// enter takes the connection for a call about keys. alone says that nobody is on the pipelined
// connection. If a call about one of the keys is under way, its end has to be awaited, so that calls
// about a key keep their order.
func (s *solo) enter(ctx context.Context, keys []string, alone bool) (mine bool, before <-chan struct{}) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case soloInUse:
		if !s.isAbout(keys) {
			return false, nil
		}
		if s.finished == nil {
			s.finished = make(chan struct{})
		}
		return false, s.finished
	case soloProbed, soloIsEnded:
		return false, nil
	case soloAway, soloFree:
	}
	recent := now.Sub(s.last) < soloTrust
	switch {
	case !alone:
	case s.state == soloFree && recent:
		s.state, s.ctx, s.keys = soloInUse, ctx, keys
		s.watch()
		return true, nil
	case recent && now.Sub(s.failed) >= soloPause:
		s.state = soloProbed
		go s.probe() // ends when the server has answered, at the latest when the client is closed and its dial has ended
	default:
		s.state = soloAway
	}
	s.last = now
	return false, nil
}

// isAbout reports whether the call under way is about one of the keys.
func (s *solo) isAbout(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(s.keys, key) })
}

// do makes the call that the caller has entered for.
func (s *solo) do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	// With a channel to wait for, rueidis would leave the reading to a goroutine from now on.
	result := s.client.Do(deadlineOf(ctx), command)
	err := result.NonRedisError()
	s.leave(err)
	if err != nil && ctx.Err() != nil {
		return rueidis.NewErrorResult(ctx.Err())
	}
	return result
}

// doMulti is do for several commands. If one of them has no answer, none has.
func (s *solo) doMulti(ctx context.Context, commands []rueidis.Completed) []rueidis.RedisResult {
	results := s.client.DoMulti(deadlineOf(ctx), commands...)
	err := results[0].NonRedisError()
	s.leave(err)
	if err != nil && ctx.Err() != nil {
		return failures(ctx.Err(), len(commands))
	}
	return results
}

// leave ends the call under way, which has failed with err.
func (s *solo) leave(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ctx, s.keys, s.last = nil, nil, time.Now()
	if s.finished != nil {
		close(s.finished)
		s.finished = nil
	}
	switch {
	case s.state == soloIsEnded:
	case err != nil:
		s.state = soloAway
	default:
		s.state = soloFree
	}
}

// probe makes the connection if need be, and sees whether the server answers. If it does not, the
// next calls that follow each other closely probe again after a pause.
func (s *solo) probe() {
	err := s.ping()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state == soloIsEnded:
	case errors.Is(err, errNoDeadline):
		s.state = soloIsEnded
	case err != nil:
		s.state, s.failed = soloAway, time.Now()
	default:
		s.state, s.last = soloFree, time.Now()
	}
}

func (s *solo) ping() error {
	if s.client == nil { // only a probe sets it, and no call is under way
		client, err := rueidis.NewClient(s.option)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.client = client
		return nil
	}
	ctx, cancel := context.WithTimeout(s.life, soloTrust)
	defer cancel()
	return s.client.Do(deadlineOf(ctx), s.client.B().Arbitrary("PING").Build()).NonRedisError()
}

// watch sees to it that somebody looks after the context of a call. s.mu is held.
func (s *solo) watch() {
	if !s.watched {
		s.watched = true
		go s.lookAfter() // ends a while after the last call, or with the solo
	}
}

// lookAfter ends calls whose context has been canceled. A goroutine for each call, or a function
// that its context calls, would cost more than the rest of a call's administration.
func (s *solo) lookAfter() {
	ticker := time.NewTicker(soloCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.life.Done():
			return
		}
		if !s.check() {
			return
		}
	}
}

// check ends the call under way if its context has ended. It reports whether there may be calls.
func (s *solo) check() (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == soloInUse {
		if s.ctx.Err() != nil {
			_ = s.conn.SetDeadline(time.Unix(1, 0)) // the reading fails, and rueidis closes the connection
		}
		return true
	}
	s.watched = time.Since(s.last) < soloTrust
	return s.watched
}

// close ends the connection. A call under way fails.
func (s *solo) close() {
	s.end()
	s.mu.Lock()
	s.state = soloIsEnded
	client := s.client
	s.mu.Unlock()
	if client != nil {
		client.Close()
	}
}

// deadlineOf returns a context that has ctx's deadline only: no values, and no channel to wait for.
func deadlineOf(ctx context.Context) context.Context {
	at, ok := ctx.Deadline()
	if !ok {
		return context.Background()
	}
	return deadline(at)
}

// A deadline is a context that ends at a moment. It leaves it to those who have it to notice that.
type deadline time.Time

var _ context.Context = deadline{}

// Deadline returns the moment.
func (d deadline) Deadline() (at time.Time, ok bool) { return time.Time(d), true }

// Done returns nil: there is nothing to wait for.
func (d deadline) Done() <-chan struct{} { return nil }

// Err returns an error when the moment has passed.
func (d deadline) Err() error {
	if time.Now().Before(time.Time(d)) {
		return nil
	}
	return context.DeadlineExceeded
}

// Value returns nil: there are no values.
func (d deadline) Value(any) any { return nil }
