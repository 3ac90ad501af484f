// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/asynclock/asynclock-go/asynclock"
)

const scope = "example.com/shop/locks" // names what makes the spans and metrics

// An observed is a client whose locks make spans and metrics.
type observed struct {
	locks    *asynclock.Client
	tracer   trace.Tracer
	waits    metric.Float64Histogram
	holdings metric.Int64UpDownCounter
	requests metric.Int64Counter
}

func newObserved(locks *asynclock.Client, traces trace.TracerProvider, metrics metric.MeterProvider) (*observed, error) {
	o := &observed{locks: locks, tracer: traces.Tracer(scope)}
	meter := metrics.Meter(scope)
	var errs [3]error
	o.waits, errs[0] = meter.Float64Histogram("lock.wait.duration", metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10), // the default ones are for milliseconds
		metric.WithDescription("How long requests waited for their key, granted or not."))
	o.holdings, errs[1] = meter.Int64UpDownCounter("lock.held", metric.WithUnit("{lease}"),
		metric.WithDescription("How many leases are held."))
	o.requests, errs[2] = meter.Int64Counter("lock.requests", metric.WithUnit("{request}"),
		metric.WithDescription("How requests ended: done, failed, held, lost or unavailable."))
	return o, errors.Join(errs[:]...)
}

// WithLock is [asynclock.Client.WithLock].
func (o *observed) WithLock(
	ctx context.Context, key string, fn func(context.Context, *asynclock.Lease) error, options ...asynclock.LockOption,
) error {
	name, _, _ := strings.Cut(key, ":")
	kind := metric.WithAttributes(attribute.String("lock.kind", name))
	ctx, request := o.tracer.Start(ctx, "lock", trace.WithAttributes(attribute.String("lock.key", key)))
	defer request.End()
	_, wait := o.tracer.Start(ctx, "wait")
	began := time.Now()
	waited := func() {
		wait.End()
		o.waits.Record(ctx, time.Since(began).Seconds(), kind)
	}

	ran := false
	err := o.locks.WithLock(ctx, key, func(ctx context.Context, lease *asynclock.Lease) error {
		ran = true
		waited()
		o.holdings.Add(ctx, 1, kind)
		defer o.holdings.Add(ctx, -1, kind)
		ctx, holding := o.tracer.Start(ctx, "hold", trace.WithAttributes(attribute.Int64("lock.token", lease.Token())))
		defer holding.End()
		err := fn(ctx, lease)
		if cause := lease.Err(); cause != nil && !errors.Is(cause, asynclock.ErrUnlocked) {
			holding.AddEvent("lease lost", trace.WithAttributes(attribute.String("cause", cause.Error())))
		}
		return err
	}, options...)
	if !ran { // the key was not granted
		waited()
	}
	outcome := outcomeOf(err)
	request.SetAttributes(attribute.String("lock.outcome", outcome))
	if err != nil && outcome != "held" { // to find a key held is no failure
		request.SetStatus(codes.Error, err.Error())
	}
	o.requests.Add(ctx, 1, kind, metric.WithAttributes(attribute.String("lock.outcome", outcome)))
	return err
}

func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, asynclock.ErrHeld):
		return "held"
	case errors.Is(err, asynclock.ErrLost):
		return "lost"
	case errors.Is(err, asynclock.ErrUnreachable):
		return "unavailable"
	}
	return "failed"
}
