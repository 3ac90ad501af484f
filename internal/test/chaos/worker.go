// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
	"github.com/asynclock/asynclock-go/internal/test/kit/timerleak"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// workerVariable makes a process a worker: it has the worker's orders as JSON.
const workerVariable = "ASYNCLOCK_NEMESIS_WORKER"

// prefix is that of all Redis keys of a run.
const prefix = "chaos"

// Orders are what a worker is to do, until its standard input ends.
type orders struct {
	Name    string // of its part of the history
	History string // directory
	Store   string // URL, or several
	Proxy   string // address, on the way to whatever server
	Vault   string // address
	Ledger  string // directory
	Rows    string // URL; empty: there are none

	Keys    []string
	TTLs    []time.Duration
	Callers int
	Habits  habits
	Timers  bool // look for those that are left in the end
	Seed    uint64
	GoRedis bool // the store is on a client of go-redis
}

// A worker is one process with one client and several callers.
type worker struct {
	orders
	locks     *asynclock.Client
	resources []resource
	rows      resource // nil: there are none
	history   *history.File
	stopping  atomic.Bool
	input     chan struct{} // closed when stopping is set
	requests  atomic.Int64
	asked     atomic.Int64
	told      atomic.Int64
	others    sync.WaitGroup // goroutines that are no callers
}

// beWorker is the whole life of such a process.
func beWorker(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	file, err := history.Create(o.History, o.Name)
	if err != nil {
		return err
	}
	if o.Timers {
		defer timerleak.Watch()()
	}
	w := &worker{orders: o, history: file, input: make(chan struct{})}
	go func() { // ends with the input
		_, _ = io.Copy(io.Discard, os.Stdin)
		w.stopping.Store(true)
		close(w.input)
	}()
	if err := w.work(); err != nil {
		return err
	}
	<-w.input
	w.locks, w.resources, w.rows = nil, nil, nil // or what they refer to would be in use
	if o.Timers {
		err = timerleak.Find("github.com/asynclock/asynclock-go/")
	}
	if err := errors.Join(err, findGoroutines(w.Store)); err != nil {
		file.Add(history.Record{Kind: history.Left, Whom: o.Name, Error: err.Error()})
	}
	file.Add(history.Record{Kind: history.Bye, Whom: o.Name, Asked: int(w.asked.Load()), Told: int(w.told.Load())})
	return file.Close()
}

// findGoroutines returns an error that lists those that are left of clients of the
// server at this URL. rueidis' Cluster client closes connections 5 s after it has
// replaced them, asleep, even if it is closed itself meanwhile. So where there are any, it
// looks again for so long. And a Cluster client that can't be opened is closed by rueidis
// while it still connects to other nodes, whose connections nobody closes then: in a
// Cluster, goroutines of connections are not looked for.
func findGoroutines(url string) (err error) {
	option, err := rueidis.ParseURL(strings.Fields(url)[0])
	if err != nil {
		return err
	}
	var ignored []goleak.Option
	if len(option.InitAddress) > 1 && option.Sentinel.MasterSet == "" {
		ignored = append(ignored,
			goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*pipe)._backgroundRead"),
			goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*pipe)._backgroundWrite"))
	}
	for end := time.Now().Add(6 * time.Second); ; {
		if err = goleak.Find(ignored...); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// work connects, works until it is to stop, and leaves nothing behind.
func (w *worker) work() error {
	store, err := overAll(w.Store, w.open)
	if store == nil {
		return err
	}
	defer store.close()
	v, err := openVault(w.Vault)
	if err != nil {
		return err
	}
	defer v.client.Close()
	w.resources = []resource{v, ledger{w.Ledger}}
	if w.Rows != "" {
		rows, err := openRow(context.Background(), w.Rows)
		if err != nil {
			return err
		}
		defer rows.close()
		w.rows = rows
	}
	heard := store.Store
	if !isQuorum(w.Store) { // which has no readers
		heard = &listener{store.Store, w}
	}
	if w.locks, err = asynclock.New(heard, asynclock.WithoutLogger()); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if w.Habits.Elections {
		w.elect(ctx)
	}
	if w.Habits.Jobs {
		w.runJobs(ctx)
	}
	var callers sync.WaitGroup
	for i := range w.Callers {
		callers.Go(func() { // ends soon after stopping is set
			c := &caller{worker: w, rand: rand.New(rand.NewPCG(w.Seed, uint64(i)))}
			for !w.stopping.Load() {
				c.request()
			}
		})
	}
	<-w.input // there may be no callers
	callers.Wait()
	stop()
	w.others.Wait()
	w.closeLocks()
	return nil
}

// closeLocks closes the client, and tells if that fails.
func (w *worker) closeLocks() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := w.locks.Close(ctx); err != nil {
		w.history.Add(history.Record{Kind: history.Left, Whom: w.Name, Error: err.Error()})
	}
}

// A workersStore is a store and what closes it.
type workersStore struct {
	store.Store

	close func()
}

// open connects to a server that may just be down. It returns nil if it is to
// stop before that.
func (w *worker) open(url string) (*workersStore, error) {
	option, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	if w.GoRedis {
		return w.openShared(option)
	}
	option.DialCtxFn = w.dial
	for !w.stopping.Load() {
		store, err := openStore(option, graceOf(w.Store, w.TTLs))
		if err == nil {
			return store, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, nil
}

// openStore connects to the store. A server that may have lost data grants nothing
// for a grace.
func openStore(option rueidis.ClientOption, grace time.Duration) (*workersStore, error) {
	s, err := redisstore.Open(option, redisstore.WithPrefix(prefix), redisstore.WithFailoverGrace(grace), redisstore.WithoutLogger())
	if err != nil {
		return nil, err
	}
	return &workersStore{s, s.Close}, nil
}

// graceOf is for as long as the longest lease can last, and in a quorum somewhat longer.
func graceOf(urls string, ttls []time.Duration) time.Duration {
	if isQuorum(urls) {
		return quorumGrace
	}
	return slices.Max(ttls)
}

// dial connects through the proxy, which is told whither.
func (w *worker) dial(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
	conn, err := dialer.DialContext(ctx, "tcp", w.Proxy)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write([]byte(addr + "\n")); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// newOp names a request.
func (w *worker) newOp() string { return fmt.Sprintf("%s/%d", w.Name, w.requests.Add(1)) }

// errorName is an error's word in the history.
func errorName(err error) string {
	if errors.Is(err, asynclock.ErrHeld) && errors.Is(err, context.DeadlineExceeded) {
		return "own limit" // of a wait, and what it waited for
	}
	for _, known := range []struct {
		is   error
		name string
	}{
		{asynclock.ErrHeld, "held"},
		{asynclock.ErrQueueFull, "queue full"},
		{asynclock.ErrForeignData, "foreign data"},
		{asynclock.ErrDenied, "denied"},
		{asynclock.ErrUnreachable, "unreachable"},
		{asynclock.ErrOutcomeUnknown, "outcome unknown"},
		{asynclock.ErrClosed, "closed"},
		{asynclock.ErrStolen, "stolen"},
		{asynclock.ErrNotRenewed, "not renewed"},
		{asynclock.ErrMaxHold, "maximum hold"},
		{asynclock.ErrExpired, "expired"},
		{asynclock.ErrLost, "lost"},
		{context.DeadlineExceeded, "own limit"},
		{context.Canceled, "canceled"},
	} {
		if errors.Is(err, known.is) {
			return known.name
		}
	}
	return err.Error()
}
