// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A site is a store, and what is seen of its clients.
type site struct {
	*testing.T
	store  store.Store
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	seen   []Option // the providers
	traces *sdktrace.TracerProvider
}

// onSite runs the test in a bubble.
func onSite(t *testing.T, test func(s *site)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &site{T: t, store: memstore.New(), reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
		s.traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans))
		s.seen = []Option{
			WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))),
			WithTracerProvider(s.traces),
		}
		test(s)
	})
}

// client makes a client that is observed.
func (s *site) client(options ...Option) *asynclock.Client {
	s.Helper()
	return s.clientWith(Observe(append(slices.Clone(s.seen), options...)...))
}

// clientWith makes a client with the option, which the test's end closes.
func (s *site) clientWith(observed asynclock.ClientOption) *asynclock.Client {
	s.Helper()
	c, err := asynclock.New(s.store, asynclock.WithoutLogger(), asynclock.WithTTL(10*time.Second), observed)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { closeNow(c) })
	return c
}

// closeNow closes a client without waiting for its leases.
func closeNow(c *asynclock.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = c.Close(ctx)
}

// traced is a context that is part of a trace that is sampled.
func (s *site) traced() context.Context {
	ctx, span := s.traces.Tracer("test").Start(s.Context(), "request")
	s.Cleanup(func() { span.End() })
	return ctx
}

// lock locks the key.
func (s *site) lock(ctx context.Context, c *asynclock.Client, key string, options ...asynclock.LockOption) *asynclock.Lease {
	s.Helper()
	l, err := c.Lock(ctx, key, options...)
	if err != nil {
		s.Fatal(err)
	}
	return l
}

// unlock gives a lease back.
func (s *site) unlock(l interface{ Unlock(context.Context) error }) {
	s.Helper()
	if err := l.Unlock(s.Context()); err != nil {
		s.Error(err)
	}
}

// collected is what was collected.
func (s *site) collected() metricdata.ResourceMetrics {
	s.Helper()
	var all metricdata.ResourceMetrics
	if err := s.reader.Collect(s.Context(), &all); err != nil {
		s.Fatal(err)
	}
	return all
}

// series are all series that were collected, by name and attributes, and the numbers in them: of a histogram how many
// values it has.
func (s *site) series() map[string]float64 {
	s.Helper()
	all := make(map[string]float64)
	add := func(name string, of attribute.Set, value float64) {
		all[name+" "+of.Encoded(attribute.DefaultEncoder())] = value
	}
	for _, scope := range s.collected().ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, float64(p.Value))
				}
			case metricdata.Sum[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, float64(p.Count))
				}
			default:
				s.Errorf("%s: got %T", m.Name, m.Data)
			}
		}
	}
	return all
}

// wantSeries fails the test unless the series that are not 0 and whose names begin so are these.
func (s *site) wantSeries(prefix string, want map[string]float64) {
	s.Helper()
	got := s.series()
	maps.DeleteFunc(got, func(name string, value float64) bool { return value == 0 || !strings.HasPrefix(name, prefix) })
	if !maps.Equal(got, want) {
		for _, name := range slices.Sorted(maps.Keys(got)) {
			s.Logf("got %q: %v", name, got[name])
		}
		s.Errorf("series of %s: got these, want %v", prefix, want)
	}
}

// shown is a span as one line: its name, attributes, status, links and events.
func shown(span sdktrace.ReadOnlySpan) string {
	set := attribute.NewSet(span.Attributes()...)
	line := fmt.Sprintf("%s %s", span.Name(), set.Encoded(attribute.DefaultEncoder()))
	if s := span.Status(); s.Code != codes.Unset {
		line += fmt.Sprintf(" %s(%s)", s.Code, s.Description)
	}
	for range span.Links() {
		line += " link"
	}
	for _, e := range span.Events() {
		line += " " + e.Name
	}
	return line
}

// wantSpans fails the test unless the spans that have ended are these, in any order.
func (s *site) wantSpans(want ...string) {
	s.Helper()
	synctest.Wait()
	var got []string
	for _, span := range s.spans.Ended() {
		if span.Name() != "request" {
			got = append(got, shown(span))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("spans: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

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
		set := attribute.NewSet(f.attributes...)
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
		s.lockOnce()
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

// lockOnce has a client hold a key for a moment.
func (s *site) lockOnce() {
	s.Helper()
	c := s.client()
	s.unlock(s.lock(s.Context(), c, "key"))
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

func TestClassesAreBounded(t *testing.T) {
	onSite(t, func(s *site) {
		c := s.client(WithMaxClasses(2), WithClassOf(BeforeColon), WithAttributes(attribute.String("team", "shop")))
		for _, key := range []string{"a:1", "b:1", "c:1", "d:1", "a:2", "none"} {
			s.unlock(s.lock(s.Context(), c, key))
		}
		const rest = "asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.store=memory,team=shop"
		s.wantSeries("asynclock.hold.", map[string]float64{
			"asynclock.hold.duration asynclock.class=a," + rest:      2,
			"asynclock.hold.duration asynclock.class=b," + rest:      1,
			"asynclock.hold.duration asynclock.class=_other," + rest: 2,
			"asynclock.hold.duration " + rest:                        1,
		})
	})
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

// A free key makes no span outside of a trace.
func TestAFreeKeyHasNoSpan(t *testing.T) {
	onSite(t, func(s *site) {
		s.lockOnce()
		s.wantSpans()
	})
}

// In a trace a lease has a span, below that of the request and above what it is for. A wait is linked to the lease that was in the
// way, and a lease to the one before.
func TestAWaitIsLinkedToWhatWasInTheWay(t *testing.T) {
	onSite(t, func(s *site) {
		observed := Observe(s.seen...)
		c, other := s.clientWith(observed), s.clientWith(observed)
		ctx := s.traced()
		l := s.lock(ctx, c, "key", asynclock.WithClass("order"))
		_, inner := s.traces.Tracer("test").Start(l.Context(), "request")
		inner.End()
		begun := time.Now()
		go func() {
			time.Sleep(time.Second)
			s.unlock(l)
		}()
		next := s.lock(s.traced(), other, "key", asynclock.WithClass("order"))
		s.unlock(next)
		s.wantSpans(
			"hold order asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.op=lock,asynclock.store=memory,asynclock.token=1,asynclock.way=at_once",
			"wait order asynclock.blocked_by=1,asynclock.mode=exclusive,asynclock.op=lock,asynclock.outcome=acquired,asynclock.store=memory,asynclock.way=queued link",
			"hold order asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.op=lock,asynclock.store=memory,asynclock.token=1048578,asynclock.way=queued link",
		)
		if t.Failed() {
			return
		}
		spans := make(map[string]sdktrace.ReadOnlySpan)
		for _, span := range s.spans.Ended() {
			spans[fmt.Sprint(span.Name(), len(span.Links()))] = span
		}
		hold, wait, second := spans["hold order0"], spans["wait order1"], spans["hold order1"]
		if want := trace.SpanContextFromContext(ctx); hold.Parent().SpanID() != want.SpanID() {
			t.Errorf("hold: got the parent %v, want %v", hold.Parent().SpanID(), want.SpanID())
		}
		if got := spans["request0"].Parent().SpanID(); got != hold.SpanContext().SpanID() {
			t.Errorf("under the lease: got the parent %v, want the hold", got)
		}
		for name, span := range map[string]sdktrace.ReadOnlySpan{"wait": wait, "second hold": second} {
			if got := span.Links()[0].SpanContext.SpanID(); got != hold.SpanContext().SpanID() {
				t.Errorf("%s: linked to %v, want the first hold", name, got)
			}
		}
		if from, took := wait.StartTime(), wait.EndTime().Sub(wait.StartTime()); !from.Equal(begun) || took != time.Second {
			t.Errorf("wait: got from %v, %v; want from %v, 1s", from, took, begun)
		}
	})
}

// What a span says of requests that come to something else, outside of a trace, too.
func TestSpansSayWhatBecameOfARequest(t *testing.T) {
	onSite(t, func(s *site) {
		hash := func(key string) string { return fmt.Sprint("#", len(key)) }
		c, other := s.client(WithKeyOnSpans(hash)), s.client()
		l := s.lock(s.Context(), other, "key")
		_, err := c.TryLock(s.Context(), "key")
		_, err2 := c.Lock(s.Context(), "key", asynclock.WithWait(time.Second))
		_, err3 := c.TryLockAll(s.Context(), []string{"a", "key"})
		if !errors.Is(err, asynclock.ErrHeld) || !errors.Is(err2, context.DeadlineExceeded) || !errors.Is(err3, asynclock.ErrHeld) {
			t.Errorf("got %v, %v, %v", err, err2, err3)
		}
		s.unlock(l)
		lost := s.lock(s.traced(), c, "key")
		if _, err := other.ForceUnlock(s.Context(), "key", lost.Token()); err != nil {
			t.Fatal(err)
		}
		<-lost.Done()
		s.wantSpans(
			"wait lock asynclock.blocked_by=1,asynclock.key=[\"#3\"],asynclock.mode=exclusive,asynclock.op=try lock,asynclock.outcome=held,asynclock.store=memory",
			"wait lock asynclock.blocked_by=1,asynclock.key=[\"#3\"],asynclock.mode=exclusive,asynclock.op=lock,asynclock.outcome=timeout,asynclock.store=memory,error.type=timeout Error(timeout)",
			"wait lock asynclock.blocked_by=1,asynclock.key=[\"#1\",\"#3\"],asynclock.mode=several,asynclock.op=try lock all,asynclock.outcome=held,asynclock.store=memory",
			"hold lock asynclock.end=forced,asynclock.key=[\"#3\"],asynclock.mode=exclusive,asynclock.op=lock,asynclock.store=memory,asynclock.token=2097154,asynclock.way=at_once Error(lease lost: forced) lease lost",
		)
	})
}

// A span is linked to none but a lease that it has to do with, and few leases are remembered.
func TestFewLeasesAreRemembered(t *testing.T) {
	t.Parallel()
	r := recentHolds{of: make(map[string]recentHold)}
	for i := range 2 * mostRecent {
		r.note(fmt.Sprint(i), recentHold{token: int64(i)})
	}
	if len(r.of) != mostRecent {
		t.Errorf("got %d, want %d", len(r.of), mostRecent)
	}
	last := 2*mostRecent - 1
	for token, want := range map[int64]int{0: 1, int64(last): 1, 7: 0} {
		if got := r.links(fmt.Sprint(last), token); len(got) != want {
			t.Errorf("links to token %d: got %d, want %d", token, len(got), want)
		}
	}
}

func TestWithoutHistograms(t *testing.T) {
	onSite(t, func(s *site) {
		c := s.client(WithoutHistograms(), WithLeastWait(0))
		s.unlock(s.lock(s.Context(), c, "key"))
		s.wantSeries("asynclock.wait.", nil)
		s.wantSeries("asynclock.hold.", nil)
		s.wantSeries("asynclock.store.", nil)
	})
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]Option{
		"nil":            nil,
		"meters":         WithMeterProvider(nil),
		"tracers":        WithTracerProvider(nil),
		"class function": WithClassOf(nil),
		"key function":   WithKeyOnSpans(nil),
		"no classes":     WithMaxClasses(0),
		"many classes":   WithMaxClasses(1001),
		"least wait":     WithLeastWait(-1),
		"attribute":      WithAttributes(attribute.KeyValue{}),
	} {
		if c, err := asynclock.New(memstore.New(), Observe(option)); !errors.Is(err, asynclock.ErrInvalidOption) || c != nil {
			t.Errorf("%s: got %v, %v; want no client, ErrInvalidOption", name, c, err)
		}
	}
	for name, observe := range map[string]func() (func() error, error){
		"nil stats of a job":       func() (func() error, error) { return ObserveJob("a", nil) },
		"nil stats of an election": func() (func() error, error) { return ObserveElection("a", nil) },
		"no name":                  func() (func() error, error) { return ObserveJob("", new(once.Stats)) },
		"bad option":               func() (func() error, error) { return ObserveJob("a", new(once.Stats), nil) },
	} {
		if stop, err := observe(); !errors.Is(err, asynclock.ErrInvalidOption) || stop != nil {
			t.Errorf("%s: got %v, want ErrInvalidOption", name, err)
		}
	}
}

// otherStore is a store of another kind.
type otherStore struct{ store.Store }

func (o otherStore) Features() store.Features {
	f := o.Store.Features()
	f.Name = "other"
	return f
}

func TestAnOptionIsForOneKindOfStore(t *testing.T) {
	t.Parallel()
	o := Observe(WithMeterProvider(noop.NewMeterProvider()))
	c, err := asynclock.New(memstore.New(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeNow(c)
	if _, err := asynclock.New(otherStore{memstore.New()}, o); !errors.Is(err, asynclock.ErrInvalidOption) {
		t.Errorf("got %v, want ErrInvalidOption", err)
	}
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
