// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/asynclock/asynclock-go/asynclock"
)

const scope = "example.com/shop/locks" // names what makes the spans and metrics

// hooks make spans and metrics of all requests and leases of a client. A metric has the class of the key only, because
// keys are too many.
func hooks(traces trace.TracerProvider, metrics metric.MeterProvider) (asynclock.Hooks, error) {
	tracer, meter := traces.Tracer(scope), metrics.Meter(scope)
	seconds := []metric.Float64HistogramOption{
		metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10), // the default ones are for milliseconds
	}
	waits, err := meter.Float64Histogram("lock.wait.duration", append(seconds, metric.WithDescription("How long requests waited."))...)
	holds, err2 := meter.Float64Histogram("lock.hold.duration", append(seconds, metric.WithDescription("How long leases lasted."))...)
	class := func(e asynclock.Request) attribute.KeyValue { return attribute.String("lock.class", e.Class) }
	return asynclock.Hooks{
		Waited: func(ctx context.Context, e asynclock.WaitedEvent) {
			waits.Record(ctx, e.Waited.Seconds(), metric.WithAttributes(class(e.Request), attribute.String("lock.outcome", e.Outcome)))
			if e.Way == "at_once" {
				return // nobody was in the way, and a span of each is too many
			}
			_, span := tracer.Start(ctx, "wait "+e.Class, trace.WithTimestamp(time.Now().Add(-e.Waited)),
				trace.WithAttributes(attribute.String("lock.key", e.Key), attribute.String("lock.outcome", e.Outcome)))
			span.End()
		},
		Hold: func(ctx context.Context, e asynclock.HoldEvent) context.Context {
			ctx, _ = tracer.Start(ctx, "hold "+e.Class, trace.WithAttributes(attribute.String("lock.key", e.Key)))
			return ctx // what runs under the lease makes spans under this one
		},
		Held: func(ctx context.Context, e asynclock.HeldEvent) {
			holds.Record(ctx, e.Held.Seconds(), metric.WithAttributes(class(e.Request), attribute.String("lock.end", e.End)))
			span := trace.SpanFromContext(ctx)
			if errors.Is(e.Err, asynclock.ErrLost) {
				span.SetStatus(codes.Error, e.End)
			}
			span.End()
		},
	}, errors.Join(err, err2)
}
