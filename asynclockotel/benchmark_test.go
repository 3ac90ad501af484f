// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A Lock and an Unlock of a free key in memory, with more and more to see of them.
func BenchmarkLockUnlock(b *testing.B) {
	meters := WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())))
	tracers := sdktrace.NewTracerProvider()
	traces := WithTracerProvider(tracers)
	traced, span := tracers.Tracer("bench").Start(context.Background(), "request")
	defer span.End()
	for _, c := range []struct {
		name    string
		ctx     context.Context
		options []asynclock.ClientOption
	}{
		{"unseen", context.Background(), nil},
		{"nothing but hooks", context.Background(), []asynclock.ClientOption{Observe(WithMeterProvider(noop.NewMeterProvider()), WithoutHistograms())}},
		{"no histograms", context.Background(), []asynclock.ClientOption{Observe(meters, traces, WithoutHistograms())}},
		{"metrics", context.Background(), []asynclock.ClientOption{Observe(meters, traces)}},
		{"metrics and a span", traced, []asynclock.ClientOption{Observe(meters, traces)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			locks, err := asynclock.New(memstore.New(), append(c.options, asynclock.WithClass("order"), asynclock.WithoutLogger())...)
			if err != nil {
				b.Fatal(err)
			}
			defer closeNow(locks)
			b.ReportAllocs()
			for b.Loop() {
				l, err := locks.Lock(c.ctx, "key")
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Unlock(c.ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
