// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/asynclock/asynclock-go/asynclock"
)

// slowStore is from what time on a request that the store granted at once has a span of its own.
const slowStore = 100 * time.Millisecond

// hasSpan reports whether a request has a span. A free key has none, which would be too many. Neither has one that the caller did
// not get in the time that it gave, outside of a trace: it may be asked for again and again.
func (o *observer) hasSpan(ctx context.Context, e *asynclock.WaitedEvent) bool {
	switch e.Outcome {
	case "acquired":
		if e.Way == "at_once" {
			return e.Waited >= max(slowStore, o.settings.leastWait)
		}
		return e.Waited >= o.settings.leastWait
	case "held", "timeout", "canceled", "forgotten":
		return e.Waited >= o.settings.leastWait && trace.SpanContextFromContext(ctx).IsSampled()
	}
	return true
}

// traceWait makes the span of a request when it is decided.
func (o *observer) traceWait(ctx context.Context, e *asynclock.WaitedEvent, class, mode string) {
	if !o.hasSpan(ctx, e) {
		return
	}
	attributes := append(o.attributesOf(&e.Request, mode), attribute.String(attrOutcome, e.Outcome))
	if e.Way != "" {
		attributes = append(attributes, attribute.String(attrWay, e.Way))
	}
	var links []trace.Link
	if e.Blocker != 0 {
		attributes = append(attributes, attribute.Int64(attrBlockedBy, e.Blocker))
		if e.Keys == nil { // of several it may be the token of any
			links = o.holds.links(e.Key, e.Blocker)
		}
	}
	now := time.Now()
	_, span := o.tracer.Start(ctx, nameOf("wait", class), trace.WithTimestamp(now.Add(-e.Waited)), trace.WithAttributes(attributes...), trace.WithLinks(links...))
	if failed(e.Outcome) {
		span.SetStatus(codes.Error, e.Outcome)
		span.SetAttributes(attribute.String(attrError, errorType(e.Err)))
	}
	span.End(trace.WithTimestamp(now))
}

// failed reports whether a request with the outcome is a failed one. It is none if the key is held by others and the caller does not wait,
// or not any longer.
func failed(outcome string) bool {
	switch outcome {
	case "acquired", "held", "canceled", "forgotten":
		return false
	}
	return true
}

// traceHold begins the span of a lease whose request is part of a trace. Its context is that of the lease.
func (o *observer) traceHold(ctx context.Context, e *asynclock.HoldEvent) context.Context {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		if ctx.Value(holdSpan{o}) == nil {
			return nil
		}
		return context.WithValue(ctx, holdSpan{o}, nil) // that of a lease around it is not this one's to end
	}
	var links []trace.Link
	if e.Way == "local" && e.Mode == asynclock.Exclusive { // otherwise others may have been in between
		links = o.holds.links(e.Key, e.Token-1) // a client numbers them on
	}
	ctx, span := o.tracer.Start(ctx, nameOf("hold", o.class(&e.Request)), trace.WithLinks(links...),
		trace.WithAttributes(append(o.attributesOf(&e.Request, modeOf(&e.Request)), attribute.Int64(attrToken, e.Token), attribute.String(attrWay, e.Way))...))
	if span.SpanContext().IsSampled() && e.Mode == asynclock.Exclusive { // others may have a token in common
		o.holds.note(e.Key, recentHold{e.Token, span.SpanContext()}) // of several keys the token is that of the first
	}
	return context.WithValue(ctx, holdSpan{o}, span)
}

// holdSpan is the key under which a context has the span of its lease.
type holdSpan struct{ of *observer }

// endHold ends the span of a lease, if it has one.
func (o *observer) endHold(ctx context.Context, e *asynclock.HeldEvent) {
	span, ok := ctx.Value(holdSpan{o}).(trace.Span)
	if !ok {
		return
	}
	if span.SetAttributes(attribute.String(attrEnd, e.End)); errors.Is(e.Err, asynclock.ErrLost) {
		span.AddEvent("lease lost", trace.WithAttributes(attribute.String(attrEnd, e.End)))
		span.SetStatus(codes.Error, "lease lost: "+e.End)
	}
	span.End()
}

// attributesOf are those that all spans of a request have.
func (o *observer) attributesOf(r *asynclock.Request, mode string) []attribute.KeyValue {
	attributes := append(o.attributes.ToSlice(), attribute.String(attrRequest, r.Op), attribute.String(attrMode, mode))
	if o.settings.keyOnSpans != nil {
		shown := make([]string, 0, max(len(r.Keys), 1))
		for _, key := range keysOf(r) {
			shown = append(shown, strings.ToValidUTF8(o.settings.keyOnSpans(key), "\ufffd"))
		}
		attributes = append(attributes, attribute.StringSlice(attrKey, shown))
	}
	return attributes
}

// keysOf are all keys of a request.
func keysOf(r *asynclock.Request) []string {
	if r.Keys != nil {
		return r.Keys
	}
	return []string{r.Key}
}

// nameOf is the name of a span.
func nameOf(what, class string) string { return what + " " + cmp.Or(class, "lock") }

// errorTypes are looked at in this order.
var errorTypes = []struct {
	err  error
	name string
}{
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "canceled"},
	{asynclock.ErrGrace, "grace"},
	{asynclock.ErrUnreachable, "unreachable"},
	{asynclock.ErrOutcomeUnknown, "outcome_unknown"},
	{asynclock.ErrLost, "lost"},
	{asynclock.ErrQueueFull, "queue_full"},
	{asynclock.ErrClosed, "closed"},
	{asynclock.ErrDenied, "denied"},
	{asynclock.ErrForeignData, "foreign_data"},
	{asynclock.ErrInvalidKey, "invalid"},
	{asynclock.ErrInvalidOption, "invalid"},
	{asynclock.ErrReentry, "invalid"},
	{asynclock.ErrLockOrder, "invalid"},
	{asynclock.ErrPermits, "invalid"},
	{asynclock.ErrUnsupported, "invalid"},
}

// errorType is one of few words for an error, as metrics need it; empty: there is none.
func errorType(err error) string {
	if err == nil {
		return ""
	}
	for _, t := range errorTypes {
		if errors.Is(err, t.err) {
			return t.name
		}
	}
	return "_OTHER"
}
