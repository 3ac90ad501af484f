// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/asynclock/asynclock-go/asynclock"
)

// Observe returns an option of a client that makes metrics and traces of its locks. With a bad option of its own
// [asynclock.New] fails with [asynclock.ErrInvalidOption].
//
// An option may be given to several clients, of stores of one kind. For another kind of store take another.
func Observe(options ...Option) asynclock.ClientOption {
	s, err := newSettings(options)
	if err != nil {
		return asynclock.WithHooks(asynclock.Hooks{Opened: func(*asynclock.Client) (func(), error) { return nil, err }})
	}
	o := &observer{
		settings: s,
		meter:    s.meters.Meter(scope),
		tracer:   s.tracers.Tracer(scope),
		classes:  classes{most: s.maxClasses, seen: make(map[string]bool)},
		holds:    recentHolds{of: make(map[string]recentHold)},
	}
	return asynclock.WithHooks(asynclock.Hooks{Opened: o.opened, Waited: o.waited, Hold: o.hold, Held: o.held, Called: o.called})
}

// An observer makes what is seen of the clients that one option was given to.
type observer struct {
	settings settings
	meter    metric.Meter
	tracer   trace.Tracer
	classes  classes
	holds    recentHolds

	opening sync.Mutex
	common  atomic.Pointer[attribute.Set] // nil: no client has been opened

	waits, lasted, calls metric.Float64Histogram // nil: there are none
	sets                 sync.Map                // from series to []metric.RecordOption
}

// A series is what one series of a histogram has in its attributes.
type series struct{ class, mode, outcome, way, end, op, err string }

// opened begins to observe a client.
func (o *observer) opened(c *asynclock.Client) (closed func(), err error) {
	o.opening.Lock()
	defer o.opening.Unlock()
	attributes := with(attribute.NewSet(o.settings.attributes...), attribute.String(attrStore, c.Stats().Store))
	if was := o.common.Load(); was != nil && was.Equivalent() != attributes.Equivalent() {
		return nil, invalid(fmt.Sprintf("one Observe for stores of several kinds, %s and before it another", c.Stats().Store))
	}
	if o.common.Load() == nil && o.settings.histograms {
		if err := o.makeHistograms(); err != nil {
			return nil, fmt.Errorf("asynclockotel: %w", err)
		}
	}
	leave, err := join(c, o.meter, attributes)
	if err != nil {
		return nil, fmt.Errorf("asynclockotel: %w", err)
	}
	o.common.Store(&attributes)
	return leave, nil
}

func (o *observer) makeHistograms() error {
	var errs []error
	for _, h := range []struct {
		at *metric.Float64Histogram
		in instrument
	}{{&o.waits, waitDuration}, {&o.lasted, holdDuration}, {&o.calls, callDuration}} {
		made, err := o.meter.Float64Histogram(h.in.name, metric.WithUnit(h.in.unit), metric.WithDescription(h.in.description),
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
	made := []metric.RecordOption{metric.WithAttributeSet(with(o.attributes(), attributes...))}
	o.sets.Store(s, made)
	return made
}

// attributes are those of everything that is observed.
func (o *observer) attributes() attribute.Set {
	if set := o.common.Load(); set != nil {
		return *set
	}
	return *attribute.EmptySet()
}

// class returns the class of the key, which is one of few.
func (o *observer) class(r *asynclock.Request) string {
	class := r.Class
	if class == "" && o.settings.classOf != nil {
		class = o.settings.classOf(r.Key)
	}
	return o.classes.bounded(class)
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
	endHold(ctx, &e)
}

func (o *observer) called(e asynclock.CalledEvent) {
	if o.calls != nil {
		o.calls.Record(context.Background(), e.Took.Seconds(), o.set(series{op: e.Op, err: errorType(e.Err)})...)
	}
}
