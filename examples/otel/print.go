// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A spanPrinter prints spans when they end. It leaves out times and numbers, which change from run to run. The
// exporter stdouttrace prints all of a span.
type spanPrinter struct{}

func (spanPrinter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, span := range spans {
		fmt.Printf("span %s%s %s, links: %d\n", span.Name(), texts(span.Attributes()), span.Status().Code, len(span.Links()))
	}
	return nil
}

func (spanPrinter) Shutdown(context.Context) error { return nil }

// texts returns the attributes that say how a request or a lease ended.
func texts(attributes []attribute.KeyValue) string {
	var all strings.Builder
	for _, a := range attributes {
		if a.Key == "asynclock.outcome" || a.Key == "asynclock.end" {
			fmt.Fprintf(&all, " %s", a.Value.AsString())
		}
	}
	return all.String()
}

// printCounts prints what Prometheus gets, as far as it is the same in each run: counts that are not 0.
func printCounts(metrics http.Handler) {
	page := httptest.NewRecorder()
	metrics.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	for line := range strings.Lines(page.Body.String()) {
		name, labels, _ := strings.Cut(line, "{")
		labels, count, _ := strings.Cut(labels, "} ")
		if name != "asynclock_request_decided_total" && name != "asynclock_hold_duration_seconds_count" || count == "0\n" {
			continue
		}
		fmt.Print(name)
		for label := range strings.SplitSeq(labels, ",") {
			if strings.HasPrefix(label, "asynclock_") && !strings.HasPrefix(label, "asynclock_store") {
				fmt.Print(" ", strings.TrimPrefix(label, "asynclock_"))
			}
		}
		fmt.Print(": ", count)
	}
}
