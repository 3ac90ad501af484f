// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	secondUses      = 0.15                 // of all orders
	contendedOrders = 0.05                 // of all orders
	usualWork       = 2 * time.Millisecond // the median
	spreadOfWork    = 0.5                  // the standard deviation of its logarithm
	mostOrders      = 5000                 // in a process at a time; then it has lost
)

// takeOrders is the work of a process that takes orders.
func takeOrders(ctx context.Context, w world, p peer) error {
	c, work, err := p.openWorker(ctx, w)
	if err != nil {
		return err
	}
	told, reports := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var t trial
		if err := told.Decode(&t); errors.Is(err, io.EOF) {
			return c.close(ctx)
		} else if err != nil {
			return err
		}
		d := &day{trial: t, worker: work}
		if err := reports.Encode(d.run(ctx)); err != nil {
			return err
		}
	}
}

// A day is a trial, in one process.
type day struct {
	trial

	worker worker
	orders int // that were new

	mu      sync.Mutex
	account account
}

// run takes orders as they come.
func (d *day) run(ctx context.Context) *account {
	slots := make(chan struct{}, mostOrders)
	var working sync.WaitGroup
	runtime.LockOSThread() // which sleeps by itself: the timers of Go are late by up to a millisecond
	defer runtime.UnlockOSThread()
	for due := d.Start; due.Before(d.Start.Add(d.For)); due = due.Add(d.pause()) {
		for time.Until(due) > 0 {
			pause := syscall.NsecToTimespec(int64(time.Until(due)))
			_ = syscall.Nanosleep(&pause, nil) // a signal ends it early
		}
		key, work := d.next(due), d.work()
		slots <- struct{}{}
		working.Go(func() {
			defer func() { <-slots }()
			wait, err := d.order(ctx, key, due, work)
			d.mu.Lock()
			defer d.mu.Unlock()
			d.account.Waits = append(d.account.Waits, millis(wait))
			if err != nil {
				d.account.Problem = err.Error()
			}
		})
	}
	working.Wait()
	return &d.account
}

// pause is the time to the next order.
func (d *day) pause() time.Duration {
	return time.Duration(rand.ExpFloat64() / d.Rate * float64(time.Second))
}

// work is how long an order takes.
func (d *day) work() time.Duration {
	return time.Duration(float64(usualWork) * math.Exp(spreadOfWork*rand.NormFloat64()))
}

// next returns the key of an order that comes now.
func (d *day) next(now time.Time) string {
	kind := rand.Float64()
	switch {
	case kind < contendedOrders:
		return fmt.Sprintf("bench:order:%s:contended:%d", d.Name, now.Sub(d.Start)/d.Busy)
	case kind < contendedOrders+secondUses && d.orders > 0:
		return d.number(rand.IntN(d.orders))
	}
	d.orders++
	return d.number(d.orders - 1)
}

// number is the key of a process's n-th order.
func (d *day) number(n int) string {
	return "bench:order:" + d.Name + ":" + strconv.Itoa(os.Getpid()) + ":" + strconv.Itoa(n)
}

// order does one order that came when it was due. It returns how long that has waited. An order that
// has waited too long is given up.
func (d *day) order(ctx context.Context, key string, due time.Time, work time.Duration) (waited time.Duration, err error) {
	patient, cancel := context.WithTimeout(ctx, lateness)
	defer cancel()
	h, err := d.worker.lock(patient, key)
	waited = time.Since(due)
	switch {
	case err != nil && patient.Err() != nil:
		return waited, nil
	case err != nil:
		return waited, err
	}
	time.Sleep(work)
	return waited, h.Unlock(ctx)
}
