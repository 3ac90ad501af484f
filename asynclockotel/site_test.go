// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// TestMain makes this test binary a service of the story if the environment names one.
func TestMain(m *testing.M) {
	if name := os.Getenv(serviceVariable); name != "" {
		if err := serve(name, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

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
	found, err := collect(s.Context(), s.reader)
	if err != nil {
		s.Fatal(err)
	}
	all := make(map[string]float64, len(found))
	for name, f := range found {
		all[name] = f.value
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

// lockOnce has a client hold a key for a moment.
func (s *site) lockOnce() {
	s.Helper()
	c := s.client()
	defer closeNow(c)
	s.unlock(s.lock(s.Context(), c, "key"))
}
