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
	"sync"
	"syscall"
	"time"
)

// The workload of orders is that of a shop: it locks the number of an order, works on it and gives it
// back. Orders come at random, whether or not earlier ones are done, to several processes. The rate
// is raised until too many have to wait for too long.
//
//   - Most are new, so nobody has used their key before. Some are seen for the second time. A few
//     have a key that another one wants at about the same time.
//   - An order waits from when it comes until it has its key.
const (
	orderTakers   = 4                    // processes
	longestWait   = 5 * time.Millisecond // for 99 of 100 orders
	slowestOrders = 1000.0               // per second, the first rate
	fasterBy      = 1.15                 // one rate to the next

	secondUses      = 0.15                 // of all orders
	contendedOrders = 0.05                 // of all orders
	usualWork       = 2 * time.Millisecond // the median
	spreadOfWork    = 0.5                  // the standard deviation of its logarithm
	mostOrders      = 5000                 // in a process at a time; then it has lost
)

// orders measures the highest rate at which 99 of 100 orders wait for at most longestWait.
func orders(size sizes) workload {
	return workload{
		name: "orders", title: "Orders in 4 processes: the highest rate at which 99 of 100 wait for at most 5 ms",
		metrics: []metric{
			{"rate", "orders/s", true},
			{Name: "p50 of waiting", Unit: "ms"},
			{Name: "p99 of waiting", Unit: "ms"},
		},
		rounds: size.orderRounds,
		limit:  2 * time.Minute,
		cold:   true,
		leaveOut: func(p peer) string {
			switch {
			case p.is.floor:
				return "can't wait"
			case p.is.etcd:
				return "left out: each goroutine would have a session of its own"
			}
			return ""
		},
		prepare: func(_ context.Context, s *stage) round {
			shop := &shop{trial: size.trial, trials: size.trials}
			for range orderTakers {
				c := s.spawn("orders", s.peer, 0)
				s.after(c.end)
				shop.takers = append(shop.takers, c)
			}
			return shop.round
		},
	}
}

// A shop is the processes that take orders.
type shop struct {
	takers []*child
	trial  time.Duration // how long a rate is tried
	trials int           // how many rates are tried at most
	tried  int
}

// A trial is what processes are told: the orders of a time.
type trial struct {
	Name  int           // in the keys of its orders
	Start time.Time     // the same for all processes
	For   time.Duration // how long orders come
	Rate  float64       // orders per second that come to each process
	Busy  time.Duration // for so long the processes have the same key for their contended orders
}

func (s *shop) round(ctx context.Context) []float64 {
	for _, c := range s.takers {
		defer context.AfterFunc(ctx, c.kill)() // so that nobody waits for them
	}
	best, rate := []float64{notMeasured, notMeasured, notMeasured}, slowestOrders
	for range s.trials {
		values := s.tryAgain(rate)
		if values[2] > millis(longestWait) {
			break
		}
		best, rate = values, rate*fasterBy
	}
	return best
}

// tryAgain is try, three times at most until orders wait for a short time. Otherwise one moment in
// which the machine does something else would decide.
func (s *shop) tryAgain(rate float64) (values []float64) {
	for range 3 {
		if values = s.try(rate); values[2] <= millis(longestWait) {
			break
		}
	}
	return values
}

// try returns the metrics of orders that come at a rate.
func (s *shop) try(rate float64) []float64 {
	s.tried++
	contended := rate * contendedOrders
	t := trial{
		Name: s.tried, Start: time.Now().Add(20 * time.Millisecond), For: s.trial, Rate: rate / orderTakers,
		Busy: time.Duration(2 / contended * float64(time.Second)), // two want the same key
	}
	for _, c := range s.takers {
		check(c.tell.Encode(t))
	}
	var waits []float64
	for _, c := range s.takers {
		var own []float64
		c.hear(&own)
		waits = append(waits, own...)
	}
	return append([]float64{rate}, quantiles(waits, 0.5, 0.99)...)
}

// takeOrders is the work of a process that takes orders.
func takeOrders(ctx context.Context, s *stage, _ int, in *json.Decoder, out *json.Encoder) {
	lock := s.client().worker()
	for {
		var t trial
		if err := in.Decode(&t); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			check(err)
		}
		d := &day{trial: t, lock: lock, key: fmt.Sprintf("%s:%d", s.key, t.Name)}
		d.run(ctx)
		check(out.Encode(d.waits))
	}
}

// A day is a trial, in one process.
type day struct {
	trial

	lock   locker
	key    string
	orders int // that were new

	mu      sync.Mutex
	waits   []float64 // of each order, in ms
	problem error
}

// run takes orders as they come.
func (d *day) run(ctx context.Context) {
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
		working.Go(func() { // ends with its order
			defer func() { <-slots }()
			d.order(ctx, key, due, work)
		})
	}
	working.Wait()
	check(d.problem)
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
		return fmt.Sprintf("%s:contended:%d", d.key, now.Sub(d.Start)/d.Busy)
	case kind < contendedOrders+secondUses && d.orders > 0:
		return d.number(rand.IntN(d.orders))
	}
	d.orders++
	return d.number(d.orders - 1)
}

// number is the key of a process's n-th order.
func (d *day) number(n int) string { return fmt.Sprintf("%s:%d:%d", d.key, os.Getpid(), n) }

// order does one order that came when it was due, and notes how long that has waited. An order that
// has waited too long is given up.
func (d *day) order(ctx context.Context, key string, due time.Time, work time.Duration) {
	patient, cancel := context.WithTimeout(ctx, lateness)
	defer cancel()
	h, err := d.lock(patient, key)
	waited := time.Since(due)
	if err == nil {
		time.Sleep(work)
		err = h.Unlock(ctx)
	} else if patient.Err() != nil {
		err = nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waits = append(d.waits, millis(waited))
	if err != nil {
		d.problem = err
	}
}
