// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
)

// key is the key that the workers lock.
const key = "demo/counter"

// tinyWork is the time between a worker's read and its write of the counter. Real programs are
// rarely so quick.
const tinyWork = 500 * time.Microsecond

// A worker is one process of the demo. It follows orders and knows nothing of the other workers.
type worker struct {
	client  *asynclock.Client
	counter counter
	ledger  string // URL

	orders  <-chan order
	reports *json.Encoder

	updates int64 // written to the counter so far
}

// Work runs a worker until its stdin ends, which also happens when the conductor dies. The counter
// is in the file at path; the ledger is at url.
func Work(ctx context.Context, client *asynclock.Client, path, url string, stdin io.Reader, stdout io.Writer) error {
	counter, err := openCounter(path)
	if err != nil {
		return err
	}
	defer counter.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	w := &worker{
		client:  client,
		counter: counter,
		ledger:  url,
		orders:  readOrders(ctx, cancel, stdin),
		reports: json.NewEncoder(stdout),
	}
	next := order{Do: doRest}
	for {
		switch next.Do {
		case doRace:
			next, err = w.race(ctx)
		case doGuard:
			next, err = w.guard(ctx)
		case doHold:
			next, err = w.hold(ctx)
		default:
			next, err = w.rest(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil // ordered to end; the failure is a consequence
		case err != nil:
			return err
		}
	}
}

// readOrders parses stdin in a goroutine of its own. The goroutine ends when stdin ends, and then
// calls done.
func readOrders(ctx context.Context, done func(), stdin io.Reader) <-chan order {
	orders := make(chan order)
	go func() {
		defer done()
		lines := bufio.NewScanner(stdin)
		for lines.Scan() {
			var o order
			if json.Unmarshal(lines.Bytes(), &o) != nil {
				return
			}
			select {
			case orders <- o:
			case <-ctx.Done():
				return
			}
		}
	}()
	return orders
}

func (w *worker) report(did string, token int64, text string) error {
	return w.reports.Encode(report{Did: did, Token: token, Updates: w.updates, Text: text})
}

func (w *worker) rest(ctx context.Context) (order, error) {
	if err := w.report(didRest, 0, ""); err != nil {
		return order{}, err
	}
	select {
	case next := <-w.orders:
		return next, nil
	case <-ctx.Done():
		return order{}, ctx.Err()
	}
}

// race raises the counter without a lock.
func (w *worker) race(ctx context.Context) (order, error) {
	for {
		value, _, err := w.counter.read()
		if err != nil {
			return order{}, err
		}
		time.Sleep(tinyWork)
		if err := w.counter.write(value+1, 0); err != nil {
			return order{}, err
		}
		w.updates++
		if err := w.report(didUpdate, 0, ""); err != nil {
			return order{}, err
		}
		select {
		case next := <-w.orders:
			return next, nil
		case <-ctx.Done():
			return order{}, ctx.Err()
		default:
		}
	}
}

// guard raises the counter, each time under a lease of its own.
func (w *worker) guard(ctx context.Context) (order, error) {
	for {
		next, lease, err := w.lock(ctx)
		if err != nil || lease == nil {
			return next, err
		}
		if err := errors.Join(w.raise(lease), unlock(ctx, lease)); err != nil {
			return order{}, err
		}
		if err := w.report(didUpdate, 0, ""); err != nil {
			return order{}, err
		}
	}
}

// raise adds one to the counter. It adds nothing if the lease ends before the write.
func (w *worker) raise(lease *asynclock.Lease) error {
	if err := w.report(didTake, lease.Token(), ""); err != nil {
		return err
	}
	value, token, err := w.counter.read()
	if err != nil {
		return err
	}
	if token >= lease.Token() {
		return fmt.Errorf("token %d came after token %d", lease.Token(), token)
	}
	time.Sleep(tinyWork)
	if !lease.Valid(0) {
		return nil
	}
	if err := w.counter.write(value+1, lease.Token()); err != nil {
		return err
	}
	w.updates++
	return nil
}

// lock waits for the key and for the next order, and returns the first of them. Without a lease it
// returns the order, or an error.
func (w *worker) lock(ctx context.Context) (order, *asynclock.Lease, error) {
	if err := w.report(didWait, 0, ""); err != nil {
		return order{}, nil, err
	}
	wait, leaveQueue := context.WithCancel(ctx)
	defer leaveQueue()
	select {
	case got := <-w.client.LockChan(wait, key):
		lease, err := got.Lease()
		return order{}, lease, err
	case next := <-w.orders:
		return next, nil, nil
	}
}

// unlock gives the lease back. A lease that was lost before is no error here.
func unlock(ctx context.Context, lease *asynclock.Lease) error {
	if err := lease.Unlock(ctx); !errors.Is(err, asynclock.ErrLost) {
		return err
	}
	return nil
}

// hold takes the lock and keeps it until the next order.
func (w *worker) hold(ctx context.Context) (order, error) {
	next, lease, err := w.lock(ctx)
	if err != nil || lease == nil {
		return next, err
	}
	next, err = w.keep(ctx, lease)
	return next, errors.Join(err, unlock(ctx, lease))
}

// keep waits for the next order. Meanwhile it writes to the ledger as often as ordered.
func (w *worker) keep(ctx context.Context, lease *asynclock.Lease) (order, error) {
	if err := w.report(didTake, lease.Token(), ""); err != nil {
		return order{}, err
	}
	lost := lease.Done()
	for {
		select {
		case next := <-w.orders:
			if next.Do != doWrite {
				return next, nil
			}
			if err := w.write(ctx, lease); err != nil {
				return order{}, err
			}
		case <-lost:
			lost = nil // only once
			if err := w.report(didLose, lease.Token(), lease.Err().Error()); err != nil {
				return order{}, err
			}
		case <-ctx.Done():
			return order{}, ctx.Err()
		}
	}
}

// write writes to the ledger with the lease's token and does not check the lease. It represents a
// program that checked the lease just before it was paused.
func (w *worker) write(ctx context.Context, lease *asynclock.Lease) error {
	stamp, err := fence.NewStamp(lease.Key(), lease.Token())
	if err != nil {
		return err
	}
	accepted, reason, err := writeToLedger(ctx, w.ledger, stamp)
	switch {
	case err != nil:
		return err
	case accepted:
		return w.report(didWrite, lease.Token(), "")
	default:
		return w.report(didRefuse, lease.Token(), reason)
	}
}
