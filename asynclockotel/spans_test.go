// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
)

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
		c := s.client()
		ctx := s.traced()
		l := s.lock(ctx, c, "key", asynclock.WithClass("order"))
		_, inner := s.traces.Tracer("test").Start(l.Context(), "request")
		inner.End()
		begun := time.Now()
		go func() {
			time.Sleep(time.Second)
			s.unlock(l)
		}()
		next := s.lock(s.traced(), c, "key", asynclock.WithClass("order"))
		s.unlock(next)
		s.wantSpans(
			"hold order asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.op=lock,asynclock.store=memory,asynclock.token=1,asynclock.way=at_once",
			"wait order asynclock.blocked_by=1,asynclock.mode=exclusive,asynclock.op=lock,asynclock.outcome=acquired,asynclock.store=memory,asynclock.way=local link",
			"hold order asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.op=lock,asynclock.store=memory,asynclock.token=2,asynclock.way=local link",
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

// Requests that come to something else have spans outside of a trace, too.
func TestSpansSayWhatBecameOfARequest(t *testing.T) {
	onSite(t, func(s *site) {
		hash := func(key string) string { return fmt.Sprint("#", len(key)) }
		c, other := s.client(WithKeyOnSpans(hash), WithLeastWait(0)), s.client()
		l := s.lock(s.Context(), other, "key")
		for range 10 { // polls of a job without a trace are no traces of their own
			if _, err := c.TryLock(s.Context(), "key"); !errors.Is(err, asynclock.ErrHeld) {
				t.Error(err)
			}
		}
		_, err := c.TryLock(s.traced(), "key")
		_, err2 := c.Lock(s.traced(), "key", asynclock.WithWait(time.Second))
		_, err3 := c.TryLockAll(s.traced(), []string{"a", "key"})
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
	for token, want := range map[int64]int{int64(last): 1, 7: 0} {
		if got := r.links(fmt.Sprint(last), token); len(got) != want {
			t.Errorf("links to token %d: got %d, want %d", token, len(got), want)
		}
	}
}

// A lease under another whose context some code has made unsampled, as a message from elsewhere does, leaves the other's span alone.
func TestALeaseEndsItsOwnSpan(t *testing.T) {
	onSite(t, func(s *site) {
		c := s.client()
		outer := s.lock(s.traced(), c, "outer")
		remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, Remote: true})
		s.unlock(s.lock(trace.ContextWithSpanContext(outer.Context(), remote), c, "inner"))
		s.wantSpans()
		s.unlock(outer)
		s.wantSpans("hold lock asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.op=lock,asynclock.store=memory,asynclock.token=1,asynclock.way=at_once")
	})
}

// A slow store shows in the trace, though nobody was in the way.
func TestASlowStoreHasASpan(t *testing.T) {
	onSite(t, func(s *site) {
		slow := asynclocktest.Wrap(s.store)
		s.store = slow
		c := s.client()
		slow.Every(asynclocktest.Acquire.Any, asynclocktest.Slow(slowStore/2, slowStore/2))
		l := s.lock(s.Context(), c, "key")
		s.wantSpans("wait lock asynclock.mode=exclusive,asynclock.op=lock,asynclock.outcome=acquired,asynclock.store=memory,asynclock.way=at_once")
		s.unlock(l)
	})
}

// Leases of several keys, of readers and of permits end their spans. None is linked to one that it does not follow.
func TestSpansOfAllKinds(t *testing.T) {
	onSite(t, func(s *site) {
		c := s.client()
		several, err := c.LockAll(s.traced(), []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		s.unlock(several)
		writer := s.lock(s.traced(), c, "b")
		reader, err := writer.Downgrade(s.traced())
		if err != nil {
			t.Fatal(err)
		}
		other, err := c.RLock(s.traced(), "b")
		if err != nil {
			t.Fatal(err)
		}
		s.unlock(other)
		s.unlock(reader)
		permits, err := c.Semaphore("permits", 2)
		if err != nil {
			t.Fatal(err)
		}
		permit, err := permits.Acquire(s.traced(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-permit.UnlockChan(s.Context()); err != nil {
			t.Error(err)
		}
		result := <-c.LockChan(s.traced(), "future")
		future, err := result.Lease()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.WithLock(future.Context(), "future", func(context.Context, *asynclock.Lease) error { return nil }, asynclock.WithReentry(true)); err != nil {
			t.Fatal(err)
		}
		s.unlock(future)
		synctest.Wait()
		holds := 0
		for _, span := range s.spans.Ended() {
			if strings.HasPrefix(span.Name(), "hold") {
				holds++
			}
			if n := len(span.Links()); n > 0 {
				t.Errorf("%s: got %d links, want none", shown(span), n)
			}
		}
		if started := len(s.spans.Started()) - 6; holds != started || holds != 7 { // but the requests' own, which go on
			t.Errorf("got %d holds that ended of %d, want 7", holds, started)
		}
	})
}

// A histogram has exemplars of requests that are traced, without any work of ours.
func TestExemplars(t *testing.T) {
	onSite(t, func(s *site) {
		c := s.client()
		ctx := s.traced()
		s.unlock(s.lock(ctx, c, "key"))
		found := 0
		for _, scope := range s.collected().ScopeMetrics {
			for _, m := range scope.Metrics {
				data, ok := m.Data.(metricdata.Histogram[float64])
				if !ok || m.Name == callDuration.name {
					continue
				}
				trace := trace.SpanContextFromContext(ctx).TraceID()
				for _, e := range data.DataPoints[0].Exemplars {
					if slices.Equal(e.TraceID, trace[:]) {
						found++
					}
				}
			}
		}
		if found != 2 {
			t.Errorf("got %d exemplars of the trace, want one for the wait and one for the hold", found)
		}
	})
}
