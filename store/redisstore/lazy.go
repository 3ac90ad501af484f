// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

const (
	// redialAfter is the least time between the end of a failed dial and the next one.
	redialAfter = 200 * time.Millisecond
	// abandonWithin is how long Close waits for a dial that it has given up. Only a dial function of the application's that
	// ignores its context takes longer.
	abandonWithin = 2 * time.Second
)

// A lazyDriver is the driver of [WithLazyDial]. It is a rueidisDriver as soon as a dial has succeeded, and stays that one.
// Its requests dial, and so do subscriptions. A dial by itself, again and again, was rejected: nobody may need the server,
// and one that refuses the password would log each of them.
type lazyDriver struct {
	option  rueidis.ClientOption
	cluster bool
	forced  bool                           // the application wants a single server
	conn    atomic.Pointer[redisconn.Conn] // nil until a dial has succeeded
	life    context.Context                //nolint:containedctx // of dials; ends with Close
	end     context.CancelFunc

	mu     sync.Mutex // held for moments
	latest *dial      // nil: none yet
}

// A dial is one try to open the connection.
type dial struct {
	done  chan struct{} // closed when it has ended
	err   error         // why it failed; is set before that
	ended time.Time     // zero: it is under way
}

// An undialedError is of a request that had no connection. It is final.
type undialedError struct{ error }

func (e undialedError) Unwrap() error { return e.error }

var (
	_ redisdriver.Driver = (*lazyDriver)(nil)
	_ asker              = (*lazyDriver)(nil)
)

// newLazyDriver begins the first dial, and does not wait for it.
func newLazyDriver(option rueidis.ClientOption) (*lazyDriver, error) {
	option.InitAddress = slices.Clone(option.InitAddress) // ShuffleInit changes it
	forced := option.ForceSingleClient || option.Standalone.EnableRedirect
	cluster := !forced && len(option.InitAddress) > 1 && option.Sentinel.MasterSet == ""
	option.ForceSingleClient = !cluster // rueidis asks one address whether it is that of a Cluster; with Sentinel it ignores this
	if err := redisconn.CheckOption(option); err != nil {
		return nil, unopened(err)
	}
	l := &lazyDriver{option: option, cluster: cluster, forced: forced}
	l.life, l.end = context.WithCancel(context.Background())
	l.dial()
	return l, nil
}

func unopened(err error) error { return fmt.Errorf("redisstore: open: %w", err) }

// dial returns the dial that a request has to wait for, which has ended if it is too early for another one.
func (l *lazyDriver) dial() *dial {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d := l.latest; d != nil {
		pausing := time.Since(d.ended) < redialAfter
		if l.life.Err() != nil || d.ended.IsZero() || d.err == nil || pausing {
			return d
		}
	}
	d := &dial{done: make(chan struct{})}
	l.latest = d
	go l.perform(d) // ends with the dial, which Close ends and waits for
	return d
}

func (l *lazyDriver) perform(d *dial) {
	err := errExited // unless open returns
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		d.err, d.ended = err, time.Now()
		close(d.done)
	}()
	var conn *redisconn.Conn
	if conn, err = l.open(); err != nil {
		return
	}
	l.conn.Store(conn)
	if l.life.Err() != nil { // Close may have waited for abandonWithin only
		conn.Close()
	}
}

var errExited = fmt.Errorf("%w: redisstore: open: a dial function has ended its goroutine", store.ErrUnreachable)

func (l *lazyDriver) open() (conn *redisconn.Conn, err error) {
	defer func() {
		if err != nil {
			err = redisconn.NotSent(unopened(err))
		}
	}()
	defer redisconn.Recovered(&err)
	return redisconn.OpenUntil(l.life, l.option)
}

// reach returns the driver when there is a connection, or why there is none.
func (l *lazyDriver) reach(ctx context.Context) (rueidisDriver, error) {
	if conn := l.conn.Load(); conn != nil {
		return rueidisDriver{conn}, nil
	}
	if err := ctx.Err(); err != nil {
		return rueidisDriver{}, undialedError{redisconn.NotSent(err)}
	}
	d := l.dial()
	select {
	case <-d.done:
	case <-ctx.Done():
		return rueidisDriver{}, undialedError{redisconn.NotSent(ctx.Err())}
	}
	switch {
	case l.life.Err() != nil:
		return rueidisDriver{}, undialedError{store.ErrClosed}
	case d.err != nil:
		return rueidisDriver{}, undialedError{d.err}
	}
	return rueidisDriver{l.conn.Load()}, nil
}

// Cluster says what the options mean, before and after the dial: the lanes of a session depend on it.
func (l *lazyDriver) Cluster() bool { return l.cluster }

func (l *lazyDriver) Sentinel() bool { return l.option.Sentinel.MasterSet != "" }

func (l *lazyDriver) Failure(err error) error {
	var undialed undialedError
	if errors.As(err, &undialed) {
		return undialed.error
	}
	conn := l.conn.Load()
	if conn == nil {
		return redisconn.NotSent(err)
	}
	if text, _ := redisconn.Refusal(err); !l.forced && strings.HasPrefix(text, "MOVED ") {
		return fmt.Errorf("%w: redisstore: a Cluster by one address: list several, or open without WithLazyDial", store.ErrInvalidOption)
	}
	return conn.Failure(err)
}

// Close ends a dial under way, and closes what was opened.
func (l *lazyDriver) Close() {
	l.end()
	l.mu.Lock()
	latest := l.latest // the last one: see dial
	l.mu.Unlock()
	limit := time.NewTimer(abandonWithin)
	defer limit.Stop()
	select {
	case <-latest.done:
	case <-limit.C: // perform closes what comes later
	}
	if conn := l.conn.Load(); conn != nil {
		conn.Close()
	}
}

func (l *lazyDriver) Eval(ctx context.Context, run redisdriver.Run) redisdriver.Result {
	d, err := l.reach(ctx)
	if err != nil {
		return redisdriver.ErrorResult(err)
	}
	return d.Eval(ctx, run)
}

func (l *lazyDriver) EvalAll(ctx context.Context, runs []redisdriver.Run) []redisdriver.Result {
	d, err := l.reach(ctx)
	if err != nil {
		return slices.Repeat([]redisdriver.Result{redisdriver.ErrorResult(err)}, len(runs))
	}
	return d.EvalAll(ctx, runs)
}

func (l *lazyDriver) GetAll(ctx context.Context, keys []string) []redisdriver.Result {
	d, err := l.reach(ctx)
	if err != nil {
		return slices.Repeat([]redisdriver.Result{redisdriver.ErrorResult(err)}, len(keys))
	}
	return d.GetAll(ctx, keys)
}

func (l *lazyDriver) Scan(ctx context.Context, pattern string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		d, err := l.reach(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		d.Scan(ctx, pattern)(yield)
	}
}

func (l *lazyDriver) Publish(ctx context.Context, ch redisdriver.Channel, payload string) (int64, error) {
	d, err := l.reach(ctx)
	if err != nil {
		return 0, err
	}
	return d.Publish(ctx, ch, payload)
}

func (l *lazyDriver) Receive(ctx context.Context, ch redisdriver.Channel, confirmed func(), deliver func(string)) error {
	d, err := l.reach(ctx)
	if err != nil {
		return err
	}
	return d.Receive(ctx, ch, confirmed, deliver)
}

// AskNode needs the connection only for how others are dialed.
func (l *lazyDriver) AskNode(ctx context.Context, address string) (node redisconn.Node, err error) {
	d, err := l.reach(ctx)
	if err != nil {
		return node, l.Failure(err)
	}
	return d.AskNode(ctx, address)
}
