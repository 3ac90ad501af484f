// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// A driver is a redisdriver.Driver by go-redis.
type driver struct {
	client  redis.UniversalClient // one of these, which is ours
	single  *redis.Client         // nil in a Cluster
	cluster *redis.ClusterClient  // nil elsewhere
	conns   *conns                // theirs
	feeds   *feeds
	places  places // of calls under way
	closed  atomic.Bool

	unreceived pace // of readings of the topology because nobody has received a message
}

var _ redisdriver.Driver = (*driver)(nil)

func (d *driver) Cluster() bool { return d.cluster != nil }

// Close ends all connections.
func (d *driver) Close() {
	d.closed.Store(true)
	_ = d.client.Close() // fails if a connection is closed that the server has closed
	d.conns.end()
	d.feeds.end()
}

// Eval runs a script.
func (d *driver) Eval(ctx context.Context, run redisdriver.Run) redisdriver.Result {
	return d.do(ctx, []*command{evalOf(&run)})[0]
}

// EvalAll runs scripts, at most redisconn.MaxPipeline at once.
func (d *driver) EvalAll(ctx context.Context, runs []redisdriver.Run) []redisdriver.Result {
	commands := make([]*command, len(runs))
	for i := range runs {
		commands[i] = evalOf(&runs[i])
		commands[i].ahead = false
	}
	return d.inPipelines(ctx, commands)
}

// GetAll asks for values, at most redisconn.MaxPipeline at once.
func (d *driver) GetAll(ctx context.Context, keys []string) []redisdriver.Result {
	commands := make([]*command, len(keys))
	for i, key := range keys {
		commands[i] = &command{key: key}
		commands[i].words = []any{"get", word{key, commands[i]}}
	}
	return d.inPipelines(ctx, commands)
}

// Scan scans one primary after another.
func (d *driver) Scan(ctx context.Context, pattern string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		nodes, err := d.primaries(ctx)
		for _, node := range nodes {
			more, failed := d.scan(ctx, node, pattern, yield)
			if !more {
				return
			}
			if err == nil {
				err = failed
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// primaries returns the nodes that have keys.
func (d *driver) primaries(ctx context.Context) (nodes []*redis.Client, err error) {
	if d.cluster == nil {
		return []*redis.Client{d.single}, nil
	}
	var mu sync.Mutex
	type answer struct {
		masters []*redis.Client
		err     error
	}
	got, err := redisconn.Aside(ctx, d.places[0], func() (a answer) {
		a.err = d.cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			a.masters = append(a.masters, node)
			return nil
		})
		return a
	})
	switch {
	case err != nil:
		return nil, err
	case got.err != nil: // the topology could not be read
		return nil, &unsent{got.err}
	}
	return got.masters, nil
}

// A page is an answer to SCAN.
type page struct {
	names  []string
	cursor uint64
	err    error
}

// scan yields the pages of one node. It reports whether the caller wants further pages.
func (d *driver) scan(ctx context.Context, node *redis.Client, pattern string, yield func([]string, error) bool) (more bool, err error) {
	for cursor := uint64(0); ; {
		got, err := redisconn.Aside(ctx, d.places[0], func() (p page) {
			d.conns.doubt(node.Options().Addr)
			p.names, p.cursor, p.err = node.Scan(ctx, cursor, pattern, redisconn.ScanPage).Result()
			p.err = ended(ctx, p.err)
			return p
		})
		if err == nil {
			err = got.err
		}
		if err != nil {
			return true, err
		}
		if !yield(got.names, nil) {
			return false, nil
		}
		if cursor = got.cursor; cursor == 0 {
			return true, nil
		}
	}
}

// unsent is the error of a command that was not sent: there was no connection.
type unsent struct{ cause error }

func (e *unsent) Error() string { return "no connection: " + e.cause.Error() }
func (e *unsent) Unwrap() error { return e.cause }

// Failure says what an error of go-redis is.
func (d *driver) Failure(err error) error {
	var without *unsent
	nothing := errors.As(err, &without)
	text, refused := serverError(err)
	switch {
	case d.closed.Load() && errors.Is(err, redis.ErrClosed):
		return store.ErrClosed
	case refused && nothing:
		return redisconn.NotSent(redisdriver.ServerError(text, err))
	case refused:
		return redisdriver.ServerError(text, err)
	case nothing, errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		// This comes first, because a dial that takes too long looks like the end of a context.
		return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, err)
}

// serverError returns the server's error without the ERR that stands for no code.
func serverError(err error) (text string, ok bool) {
	var reply redis.Error
	if err == nil || errors.Is(err, redis.Nil) || !errors.As(err, &reply) {
		return "", false
	}
	return strings.TrimPrefix(reply.Error(), "ERR "), true
}

// ended returns the error of a call that go-redis gave up at the deadline of its context, which it
// calls a timeout of the network. The end of a context of its own, for example of a TLS handshake, is
// another error.
func ended(ctx context.Context, err error) error {
	var timeout net.Error
	var without *unsent
	deadline, limited := ctx.Deadline()
	switch {
	case limited && errors.As(err, &timeout) && timeout.Timeout() && !time.Now().Before(deadline):
		return context.DeadlineExceeded
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return ctx.Err()
	case ctx.Err() != nil || errors.As(err, &without): // which Failure knows
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("goredisstore: within the client: %s", err.Error())
	}
	return err
}
