// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
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
	slowestOrders = 1000                 // per second, the first rate
	fasterBy      = 1.15                 // one rate to the next
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
		rounds:   size.orderRounds,
		limit:    2 * time.Minute,
		cold:     true,
		leaveOut: measuresOrders,
		prepare: func(ctx context.Context, w world, p peer) (runner, error) {
			s := &shop{trial: size.trial, trials: size.trials}
			for range orderTakers {
				o, err := startOrderTaker(ctx, p, w)
				if err != nil {
					return nil, errors.Join(err, s.close(ctx))
				}
				s.takers = append(s.takers, o)
			}
			return s, nil
		},
	}
}

func measuresOrders(p peer) string {
	switch {
	case p.is.floor:
		return "can't wait"
	case p.is.etcd:
		return "left out: each goroutine would have a session of its own"
	}
	return ""
}

// A shop is the processes that take orders.
type shop struct {
	takers []*orderTaker
	trial  time.Duration // how long a rate is tried
	trials int           // how many rates are tried at most
	rounds int
}

// A trial is what processes are told: the orders of a time.
type trial struct {
	Name  string        // in the keys of its orders
	Start time.Time     // the same for all processes
	For   time.Duration // how long orders come
	Rate  float64       // orders per second that come to each process
	Busy  time.Duration // for so long the processes have the same key for their contended orders
}

// An account is what a process answers.
type account struct {
	Waits   []float64 // of each order, in ms
	Problem string
}

func (s *shop) round(ctx context.Context) ([]float64, error) {
	defer context.AfterFunc(ctx, s.kill)() // so that nobody waits for them
	s.rounds++
	best, rate := []float64{math.NaN(), math.NaN(), math.NaN()}, float64(slowestOrders)
	for n := range s.trials {
		row, err := s.tryAgain(fmt.Sprintf("%d.%d", s.rounds, n), rate)
		if err != nil {
			return nil, err
		}
		if row[2] > millis(longestWait) {
			break
		}
		best, rate = row, rate*fasterBy
	}
	return best, nil
}

// tryAgain is try, three times at most until orders wait for a short time. Otherwise one moment in
// which the machine does something else would decide.
func (s *shop) tryAgain(name string, rate float64) (row []float64, err error) {
	for n := range 3 {
		if row, err = s.try(fmt.Sprintf("%s.%d", name, n), rate); err != nil || row[2] <= millis(longestWait) {
			break
		}
	}
	return row, err
}

// try returns the metrics of orders that come at a rate.
func (s *shop) try(name string, rate float64) ([]float64, error) {
	contended := rate * contendedOrders
	t := trial{
		Name: name, Start: time.Now().Add(20 * time.Millisecond), For: s.trial, Rate: rate / orderTakers,
		Busy: time.Duration(2 / contended * float64(time.Second)), // two want the same key
	}
	for _, o := range s.takers {
		if err := o.tell.Encode(t); err != nil {
			return nil, err
		}
	}
	var waits []float64
	for _, o := range s.takers {
		var a account
		if err := o.reports.Decode(&a); err != nil {
			return nil, fmt.Errorf("a process that takes orders: %w", err)
		}
		if a.Problem != "" {
			return nil, errors.New(a.Problem)
		}
		waits = append(waits, a.Waits...)
	}
	return append([]float64{rate}, quantiles(waits, 0.5, 0.99)...), nil
}

func (s *shop) kill() {
	for _, o := range s.takers {
		_ = o.process.Process.Kill() // one that has ended already needs no end
	}
}

func (s *shop) close(context.Context) (err error) {
	for _, o := range s.takers {
		err = errors.Join(err, o.in.Close(), o.process.Wait())
	}
	return err
}

// An orderTaker is a process that takes orders.
type orderTaker struct {
	process *exec.Cmd
	in      io.Closer
	tell    *json.Encoder
	reports *json.Decoder
}

func startOrderTaker(ctx context.Context, p peer, w world) (*orderTaker, error) {
	process, in, out, err := startAgain(ctx, "orders", p, w)
	if err != nil {
		return nil, err
	}
	return &orderTaker{process, in, json.NewEncoder(in), json.NewDecoder(out)}, nil
}
