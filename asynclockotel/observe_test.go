// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store"
)

// All kinds of request and what can become of them, on keys and with descriptions that are in no metric.
func TestMetricsAreTheCountsAndNameNobody(t *testing.T) {
	onSite(t, func(s *site) {
		secret := "customer-4711"
		c := s.client(WithClassOf(BeforeColon))
		other, err := asynclock.New(s.store, asynclock.WithoutLogger(), asynclock.WithDescription("host of "+secret))
		if err != nil {
			t.Fatal(err)
		}
		defer closeNow(other)
		key := "order:" + secret
		l := s.lock(s.traced(), c, key)
		if _, err := c.TryLock(s.Context(), key, asynclock.WithClass("refund")); !errors.Is(err, asynclock.ErrHeld) {
			t.Error(err)
		}
		future := c.LockChan(s.Context(), key)
		time.Sleep(time.Second)
		synctest.Wait()
		s.unlock(l)
		result := <-future
		next, err := result.Lease()
		if err != nil {
			t.Fatal(err)
		}
		info, err := other.Inspect(s.Context(), key) // a key that was passed on in a client has the first token there
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.ForceUnlock(s.Context(), key, info.Token); err != nil {
			t.Fatal(err)
		}
		<-next.Done()
		several, err := c.LockAll(s.Context(), []string{key, key + "b"})
		if err != nil {
			t.Fatal(err)
		}
		reader, err := c.RLock(s.Context(), "doc:"+secret)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()

		mine := map[string]float64{
			"asynclock.request.decided asynclock.mode=exclusive,asynclock.outcome=acquired,asynclock.store=memory,asynclock.way=at_once": 1,
			"asynclock.request.decided asynclock.mode=exclusive,asynclock.outcome=acquired,asynclock.store=memory,asynclock.way=local":   1,
			"asynclock.request.decided asynclock.mode=exclusive,asynclock.outcome=held,asynclock.store=memory":                           1,
			"asynclock.request.decided asynclock.mode=several,asynclock.outcome=acquired,asynclock.store=memory,asynclock.way=at_once":   1,
			"asynclock.request.decided asynclock.mode=readers,asynclock.outcome=acquired,asynclock.store=memory,asynclock.way=at_once":   1,
		}
		s.wantSeries("asynclock.request.", mine)
		s.wantSeries("asynclock.lease.", map[string]float64{
			"asynclock.lease.ended asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.store=memory": 1,
			"asynclock.lease.ended asynclock.end=forced,asynclock.mode=exclusive,asynclock.store=memory":   1,
			"asynclock.lease.held asynclock.mode=several,asynclock.store=memory":                           1,
			"asynclock.lease.held asynclock.mode=readers,asynclock.store=memory":                           1,
		})
		s.wantSeries("asynclock.wait.", map[string]float64{
			"asynclock.wait.duration asynclock.class=order,asynclock.mode=exclusive,asynclock.outcome=acquired,asynclock.store=memory,asynclock.way=at_once": 1,
			"asynclock.wait.duration asynclock.class=order,asynclock.mode=exclusive,asynclock.outcome=acquired,asynclock.store=memory,asynclock.way=local":   1,
			"asynclock.wait.duration asynclock.class=refund,asynclock.mode=exclusive,asynclock.outcome=held,asynclock.store=memory":                          1,
			"asynclock.wait.duration asynclock.class=order,asynclock.mode=several,asynclock.outcome=acquired,asynclock.store=memory,asynclock.way=at_once":   1,
			"asynclock.wait.duration asynclock.class=doc,asynclock.mode=readers,asynclock.outcome=acquired,asynclock.store=memory,asynclock.way=at_once":     1,
		})
		s.wantSeries("asynclock.hold.", map[string]float64{
			"asynclock.hold.duration asynclock.class=order,asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.store=memory": 1,
			"asynclock.hold.duration asynclock.class=order,asynclock.end=forced,asynclock.mode=exclusive,asynclock.store=memory":   1,
		})
		owner := strings.Split(fmt.Sprintf("%v", l), " ")
		said, err := json.Marshal(s.collected())
		if err != nil {
			t.Fatal(err)
		}
		for _, never := range []string{secret, "customer", fmt.Sprint(next.Token()) + `"`, owner[0]} {
			if strings.Contains(string(said), never) {
				t.Errorf("the metrics have %q", never)
			}
		}
		s.unlock(several)
		s.unlock(reader)
	})
}

// Every number that a client counts is a series, except the sum of others, and no two are the same.
func TestEachCountIsASeries(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(asynclock.Stats{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(figures), strings.Count(string(text), ":0")-strings.Count(string(text), `"requested"`)-1; got != want { // least_trust is no count
		t.Errorf("got %d figures, want %d", got, want)
	}
	seen := make(map[string]bool)
	for _, f := range figures {
		set := attribute.NewSet(slices.Clone(f.attributes)...)
		name := f.of.name + " " + set.Encoded(attribute.DefaultEncoder())
		if seen[name] {
			t.Errorf("twice: %s", name)
		}
		seen[name] = true
	}
}

// Each instrument is of its kind, has its unit, and no attributes but its own. Histograms have their buckets.
func TestInstrumentsAreAsTheTableSays(t *testing.T) {
	onSite(t, func(s *site) {
		c := s.client()
		s.unlock(s.lock(s.Context(), c, "key"))
		var runs once.Stats
		var terms elect.Stats
		stopJob, err := ObserveJob("report", &runs, s.seen...)
		stopElection, err2 := ObserveElection("shop", &terms, s.seen...)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		got := make(map[string]instrument)
		for _, scope := range s.collected().ScopeMetrics {
			for _, m := range scope.Metrics {
				in := instrument{name: m.Name, unit: m.Unit, description: m.Description}
				var sets []attribute.Set
				switch data := m.Data.(type) {
				case metricdata.Sum[int64]:
					in.kind = sumKind(data.IsMonotonic)
					for _, p := range data.DataPoints {
						sets = append(sets, p.Attributes)
					}
				case metricdata.Sum[float64]:
					in.kind = sumKind(data.IsMonotonic)
					for _, p := range data.DataPoints {
						sets = append(sets, p.Attributes)
					}
				case metricdata.Gauge[float64]:
					in.kind = gauge
				case metricdata.Histogram[float64]:
					in.kind = histogram
					for _, p := range data.DataPoints {
						sets = append(sets, p.Attributes)
						if !slices.Equal(p.Bounds, buckets) {
							t.Errorf("%s: got buckets %v", m.Name, p.Bounds)
						}
					}
				}
				got[m.Name] = in
				for _, set := range sets {
					for _, a := range set.ToSlice() {
						if name := string(a.Key); name != attrStore && !slices.Contains(tableOf(m.Name).attributes, name) {
							t.Errorf("%s has the attribute %s, which is not in the table", m.Name, name)
						}
					}
				}
			}
		}
		for _, want := range instruments {
			want.attributes = nil
			if g := got[want.name]; fmt.Sprint(g) != fmt.Sprint(want) {
				t.Errorf("%s: got %v, want %v", want.name, g, want)
			}
		}
		if len(got) != len(instruments) {
			t.Errorf("got %d instruments, want %d", len(got), len(instruments))
		}
		if err := errors.Join(stopJob(), stopElection()); err != nil {
			t.Error(err)
		}
	})
}

func sumKind(monotonic bool) kind {
	if monotonic {
		return counter
	}
	return upDown
}

func tableOf(name string) instrument {
	for _, in := range instruments {
		if in.name == name {
			return in
		}
	}
	return instrument{}
}

// Clients of one provider are reported as one. A gauge is that of the worst, and no counter goes back when a client is closed.
func TestClientsAreAddedUp(t *testing.T) {
	onSite(t, func(s *site) {
		a, b := s.client(), s.client() // an Observe for each
		both := Observe(s.seen...)
		c, d := s.clientWith(both), s.clientWith(both)
		for _, each := range []*asynclock.Client{a, b, c, d} {
			s.unlock(s.lock(s.Context(), each, "key"))
		}
		want := map[string]float64{"asynclock.lease.ended asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.store=memory": 4}
		s.wantSeries("asynclock.lease.", want)
		for _, each := range []*asynclock.Client{a, b, c, d} {
			closeNow(each)
			s.wantSeries("asynclock.lease.", want)
		}
		s.unlock(s.lock(s.Context(), s.client(), "key"))
		want["asynclock.lease.ended asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.store=memory"]++
		s.wantSeries("asynclock.lease.", want)
	})
}

func TestAnOutageShows(t *testing.T) {
	onSite(t, func(s *site) {
		faulty := asynclocktest.Wrap(s.store)
		s.store = faulty
		c, well := s.client(), s.client()
		s.lock(s.Context(), c, "key")
		s.lock(s.Context(), well, "key2")
		s.wantSeries("asynclock.client.", nil)
		defer faulty.Every(asynclocktest.Match(asynclocktest.Renew.Any).From(0), asynclocktest.Fail(store.ErrUnreachable))()
		time.Sleep(8 * time.Second)
		synctest.Wait()
		s.wantSeries("asynclock.client.", map[string]float64{"asynclock.client.failing asynclock.store=memory": 1})
		if got := s.series()["asynclock.trust.least asynclock.store=memory"]; got >= 1 {
			t.Errorf("least trust: got %v", got)
		}
		if got := s.series()["asynclock.store.call.duration asynclock.store=memory,asynclock.store.op=renew,error.type=unreachable"]; got == 0 {
			t.Errorf("calls that failed: got none of %v", s.series())
		}
	})
}

func TestJobsAndElections(t *testing.T) {
	onSite(t, func(s *site) {
		c := s.client()
		var runs once.Stats
		stop, err := ObserveJob("report", &runs, s.seen...)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, err = once.Do(s.Context(), c, "report", time.Hour, func(context.Context, once.Run) error {
				time.Sleep(2 * time.Second)
				return nil
			}, once.WithStats(&runs))
			if err != nil {
				t.Fatal(err)
			}
		}
		s.wantSeries("asynclock.job.", map[string]float64{
			"asynclock.job.runs asynclock.job=report,asynclock.outcome=done":          1,
			"asynclock.job.idle_calls asynclock.job=report,asynclock.outcome=skipped": 2,
			"asynclock.job.time asynclock.job=report":                                 2,
		})
		if err := stop(); err != nil {
			t.Error(err)
		}
		s.wantSeries("asynclock.job.", nil)

		var led elect.Stats
		stop, err = ObserveElection("shop", &led, s.seen...)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(s.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = elect.Run(ctx, c, "leader", func(ctx context.Context, _ *elect.Term) error { <-ctx.Done(); return nil }, elect.WithStats(&led))
		}()
		time.Sleep(3 * time.Second)
		s.wantSeries("asynclock.election.", map[string]float64{
			"asynclock.election.leading asynclock.election=shop": 1,
			"asynclock.election.led asynclock.election=shop":     3,
		})
		cancel()
		<-done
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
