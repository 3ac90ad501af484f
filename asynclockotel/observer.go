// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/asynclock/asynclock-go/asynclock"
)

// Observe returns an option of a client that makes metrics and traces of its locks. It may be given to several
// clients. With a bad option of its own [asynclock.New] fails with [asynclock.ErrInvalidOption]. It also does so for a
// client that is given two with one meter provider and the same attributes, because all would be counted twice.
func Observe(options ...Option) asynclock.ClientOption {
	s, err := newSettings(options)
	return asynclock.WithHooksFor(func(c *asynclock.Client) (asynclock.Hooks, error) {
		if err != nil {
			return asynclock.Hooks{}, err
		}
		return observe(c, s)
	})
}

// An observer makes what is seen of a client.
type observer struct {
	settings   settings
	group      *group
	attributes attribute.Set // of everything
	tracer     trace.Tracer
	holds      recentHolds

	waits, lasted, calls metric.Float64Histogram // nil: there are none
	sets                 sync.Map                // from series to []metric.RecordOption
}

// A series is what one series of a histogram has in its attributes.
type series struct{ class, mode, outcome, way, end, op, err string }

// observe begins to observe a client.
func observe(c *asynclock.Client, s settings) (asynclock.Hooks, error) {
	attributes := with(*attribute.EmptySet(), s.attributes...) // NewSet sorts what it is given
	if store := c.Stats().Store; store != "" {
		attributes = with(attributes, attribute.String(attrStore, store))
	}
	o := &observer{
		settings: s, attributes: attributes, tracer: s.tracers.Tracer(scope), holds: recentHolds{of: make(map[string]recentHold)},
	}
	from, err := s.source()
	if isNil(o.tracer) {
		err = invalid("a tracer provider that gives no tracer")
	}
	if err == nil && s.histograms {
		err = o.makeHistograms(from.meter)
	}
	if err == nil {
		o.group, err = join(c, from, attributes)
	}
	if err != nil {
		return asynclock.Hooks{}, fmt.Errorf("asynclockotel: %w", err)
	}
	return asynclock.Hooks{
		Waited: o.waited, Hold: o.hold, Held: o.held, Called: o.called, Closed: func() { o.group.leave(c) },
	}, nil
}

func (o *observer) makeHistograms(meter metric.Meter) error {
	var errs []error
	for _, h := range []struct {
		at *metric.Float64Histogram
		in instrument
	}{{&o.waits, waitDuration}, {&o.lasted, holdDuration}, {&o.calls, callDuration}} {
		made, err := meter.Float64Histogram(h.in.name, metric.WithUnit(h.in.unit), metric.WithDescription(h.in.description),
			metric.WithExplicitBucketBoundaries(buckets...))
		errs = append(errs, err)
		*h.at = made
	}
	return errors.Join(errs...)
}

// set returns the attributes of a series, which are made once.
func (o *observer) set(s series) []metric.RecordOption {
	if found, ok := o.sets.Load(s); ok {
		return found.([]metric.RecordOption) //nolint:forcetypeassert // nothing else is stored
	}
	var attributes []attribute.KeyValue
	for _, a := range []struct{ name, value string }{
		{attrClass, s.class}, {attrMode, s.mode}, {attrOutcome, s.outcome}, {attrWay, s.way}, {attrEnd, s.end}, {attrOp, s.op}, {attrError, s.err},
	} {
		if a.value != "" {
			attributes = append(attributes, attribute.String(a.name, a.value))
		}
	}
	made := []metric.RecordOption{metric.WithAttributeSet(with(o.attributes, attributes...))}
	o.sets.Store(s, made)
	return made
}

// class returns the class of the key, which is one of few.
func (o *observer) class(r *asynclock.Request) string {
	class := r.Class
	if class == "" && o.settings.classOf != nil {
		class = o.settings.classOf(r.Key)
	}
	return o.group.classes.bounded(class, o.settings.maxClasses)
}

// modeOf is the request's mode, as asynclock.Stats has it.
func modeOf(r *asynclock.Request) string {
	switch {
	case r.Keys != nil:
		return "several"
	case r.Mode == asynclock.Shared:
		return "readers"
	}
	return r.Mode.String()
}

func (o *observer) waited(ctx context.Context, e asynclock.WaitedEvent) {
	class, mode := o.class(&e.Request), modeOf(&e.Request)
	if o.waits != nil {
		o.waits.Record(ctx, e.Waited.Seconds(), o.set(series{class: class, mode: mode, outcome: e.Outcome, way: e.Way})...)
	}
	o.traceWait(ctx, &e, class, mode)
}

func (o *observer) hold(ctx context.Context, e asynclock.HoldEvent) context.Context {
	return o.traceHold(ctx, &e)
}

func (o *observer) held(ctx context.Context, e asynclock.HeldEvent) {
	if o.lasted != nil {
		o.lasted.Record(ctx, e.Held.Seconds(), o.set(series{class: o.class(&e.Request), mode: modeOf(&e.Request), end: e.End})...)
	}
	o.endHold(ctx, &e)
}

func (o *observer) called(e asynclock.CalledEvent) {
	if o.calls != nil {
		o.calls.Record(context.Background(), e.Took.Seconds(), o.set(series{op: e.Op, err: errorType(e.Err)})...)
	}
}
