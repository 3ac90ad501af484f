// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

const (
	serverTime  = 3 * time.Second // for the check of the server
	warmUpTime  = time.Second     // at most, before requests are measured
	warmUps     = 10              // each of another key, as keys may have different servers
	roundTrips  = 20
	tripPause   = 50 * time.Millisecond  // between these, because a server may be slow for moments
	unsteady    = 100 * time.Millisecond // a request that takes as long is slow anywhere
	unsteadyBy  = 20                     // and stands out if it takes as many times as long as half of all
	atTheEnd    = 100 * time.Millisecond // of the time: a store may give up a moment before that is over
	silentTime  = time.Second            // no connection takes as long to open, except to a server that was silent
	lateRenewal = 15                     // a client sends large calls once renewals are late by this part of the TTL
)

// server finds out whether the server answers, and how fast.
func (x *examination) server(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	before, trips, err := measure(ctx, x.session)
	if len(trips) == 0 {
		x.fail("answers", Fail, "a key can't be inspected", err)
		return
	}
	p50, p99 := quantile(trips, 0.5), quantile(trips, 0.99)
	fact := fmt.Sprintf("answers within %s (p50) and %s (p99 of %s)", short(p50), short(p99), count(len(trips), "request", "requests"))
	switch late := x.settings.ttl / lateRenewal; {
	case err != nil:
		x.fail("answers", Warn, fact+", and then failed", err)
	case p99 > late:
		x.report("answers", Warn, fact+": renewals may come late, as that is more than a fifteenth of the TTL, "+short(late),
			"use a longer TTL, or find out what makes the server or the network slow")
	case p99 >= unsteady && p99 >= unsteadyBy*p50:
		x.report("answers", Note, fact+": the server or the network is slow for moments",
			"repeat this; look for commands that take long (SLOWLOG GET of Redis), and at the load of the server")
	case before >= silentTime:
		x.report("answers", Warn, fact+", but one request took "+short(before)+" just before",
			"find out whether the server was silent for so long, or whether connections open so slowly; then repeat this")
	default:
		x.report("answers", OK, fact, "")
	}
}

// measure returns how long requests take. Those that open connections are left out, if there are others, and the longest of
// them is returned as before.
func measure(ctx context.Context, session store.Session) (before time.Duration, trips []time.Duration, err error) {
	base, began, warm := scratchKey(), time.Now(), 0
	end, _ := ctx.Deadline()
	isOver := func() bool { return ctx.Err() != nil || time.Until(end) < atTheEnd }
	for n := 0; n < warm+roundTrips && !isOver() && err == nil; n++ {
		if n == warm && n < warmUps && time.Since(began) < warmUpTime {
			warm++
		}
		if n > warm && time.Since(began) < serverTime/2 { // a slow server needs the rest for its answers
			_ = pause(ctx, tripPause) // the loop ends with ctx
		}
		sent := time.Now()
		_, err = session.Inspect(ctx, fmt.Sprintf("%s/%d", base, n%warmUps))
		if trip := time.Since(sent); err == nil || isOver() && n > 0 && trip > slices.Max(trips) {
			trips = append(trips, trip) // a server that falls silent is a slow one
		}
	}
	if len(trips) == 0 {
		return 0, nil, err
	}
	if isOver() {
		err = nil
	}
	warm = min(warm, len(trips)-1)
	for _, trip := range trips[:warm] {
		before = max(before, trip)
	}
	return before, trips[warm:], err
}

// quantile returns the smallest of the durations that is not less than that part of them.
func quantile(trips []time.Duration, part float64) time.Duration {
	sorted := slices.Sorted(slices.Values(trips))
	return sorted[int(math.Ceil(part*float64(len(sorted))))-1]
}
