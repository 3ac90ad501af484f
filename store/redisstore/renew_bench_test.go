// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// BenchmarkRenewalRound is how the size of renewal calls was chosen: it renews
// 100,000 holdings (10,000 with -short), one call after the other as the core does,
// or two at a time, while another client locks and unlocks other keys, one each
// millisecond. Run it with -benchtime 1x, and nothing else on the machine.
func BenchmarkRenewalRound(b *testing.B) {
	holdings := 100_000
	if testing.Short() {
		holdings = 10_000
	}
	sv := onServer(b, redistest.Option(b, "ASYNCLOCK_REDIS_URL"))
	c := join(b, sv.store(b))
	other := join(b, sv.store(b))
	batch := holdForRound(b, c, holdings)
	for _, atOnce := range []int{1, 2} {
		for _, size := range []int{16, 32, 64, 128} {
			b.Run(fmt.Sprintf("calls=%d/keys=%d", atOnce, size), func(b *testing.B) {
				var between, during []time.Duration
				server := 0.0
				for b.Loop() {
					b.StopTimer()
					between = append(between, other.lockFor(b, time.Second)...)
					_, before := sv.evaluated(b)
					ctx, stop := context.WithCancel(b.Context())
					probed := make(chan []time.Duration, 1)
					go func() { probed <- other.lockUntil(ctx, b) }() // received below
					b.StartTimer()
					c.renewRound(b, batch, size, atOnce)
					b.StopTimer()
					stop()
					during = append(during, <-probed...)
					_, after := sv.evaluated(b)
					server += float64(after - before) // with that of the locks, one each millisecond
					b.StartTimer()
				}
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/round")
				b.ReportMetric(server/float64(b.N)/float64(holdings), "server-µs/key")
				for name, times := range map[string][]time.Duration{"between": between, "during": during} {
					slices.Sort(times)
					b.ReportMetric(micros(times[len(times)/2]), "µs-p50-"+name)
					b.ReportMetric(micros(times[len(times)*99/100]), "µs-p99-"+name)
				}
				b.ReportMetric(0, "ns/op") // it says what ms/round says
			})
		}
	}
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// roundTTL outlasts the benchmark.
const roundTTL = 10 * time.Minute

func holdForRound(b *testing.B, c *client, n int) []store.RenewRequest {
	b.Helper()
	holdings := make([]store.RenewRequest, n)
	for first := 0; first < n; first += 256 {
		var asked []store.AcquireRequest
		for i := first; i < min(first+256, n); i++ {
			q := redistest.Request(fmt.Sprint("key ", i), fmt.Sprintf("owner-as-long-as-any-%03d-%d", i%1000, i))
			q.TTL = roundTTL
			asked = append(asked, q)
		}
		for i, reply := range c.session.Acquire(b.Context(), asked) {
			if reply.Err != nil || reply.Status != store.Granted {
				b.Fatalf("Acquire: got %+v, want it granted", reply)
			}
			holdings[first+i] = store.RenewRequest{Key: asked[i].Key, Owner: asked[i].Owner, TTL: roundTTL, Token: reply.Token}
			c.session.store.reaches.tell(&holdings[first+i], time.Now())
		}
	}
	return holdings
}

// renewRound renews all, with so many keys in a call and so many calls at once.
func (c *client) renewRound(b *testing.B, batch []store.RenewRequest, size, atOnce int) {
	b.Helper()
	done := make(chan error, atOnce)
	share := (len(batch) + atOnce - 1) / atOnce
	for part := range slices.Chunk(batch, share) {
		go func() { // received below
			var failed error
			for some := range slices.Chunk(part, size) {
				failed = errors.Join(failed, c.renewOnce(b.Context(), some))
			}
			done <- failed
		}()
	}
	for range atOnce {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}

// renewOnce is Renew with all of batch in one command.
func (c *client) renewOnce(ctx context.Context, batch []store.RenewRequest) error {
	replies, all := make([]store.RenewReply, len(batch)), make([]int, len(batch))
	for i := range all {
		all[i] = i
	}
	r := renewing{session: c.session, batch: batch, replies: replies}
	if left := r.fast(ctx, all); len(left) > 0 {
		r.chunks(ctx, [][]int{left}, renewWhole)
	}
	for _, r := range replies {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

func (c *client) lockFor(b *testing.B, span time.Duration) []time.Duration {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), span)
	defer cancel()
	return c.lockUntil(ctx, b)
}

// lockUntil locks and unlocks a key each millisecond until ctx ends, and says how
// long each time took.
func (c *client) lockUntil(ctx context.Context, b *testing.B) (times []time.Duration) {
	b.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return times
		case <-tick.C:
		}
		start, key, owner := time.Now(), "other "+strconv.Itoa(n%97), "o"+strconv.FormatInt(time.Now().UnixNano(), 36)
		got := c.session.Acquire(b.Context(), []store.AcquireRequest{redistest.Request(key, owner)})[0]
		gone := c.session.Release(b.Context(), []store.ReleaseRequest{{Key: key, Owner: owner, Token: got.Token, Clean: true}})[0]
		if got.Err != nil || gone.Err != nil {
			b.Errorf("beside a round: got %v and %v, want no errors", got.Err, gone.Err)
			return times
		}
		times = append(times, time.Since(start))
	}
}
