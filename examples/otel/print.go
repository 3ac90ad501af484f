// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A spanPrinter prints spans when they end. It leaves out times and numbers, which change from run to run. The
// exporter stdouttrace prints all of a span.
type spanPrinter struct{}

func (spanPrinter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, span := range spans {
		fmt.Printf("span %s%s %s\n", span.Name(), texts(span.Attributes()), span.Status().Code)
	}
	return nil
}

func (spanPrinter) Shutdown(context.Context) error { return nil }

// texts returns the attributes that are no numbers.
func texts(attributes []attribute.KeyValue) string {
	var all strings.Builder
	for _, a := range attributes {
		if a.Value.Type() == attribute.STRING {
			fmt.Fprintf(&all, " %s=%q", a.Key, a.Value.AsString())
		}
	}
	return all.String()
}

// printMetrics prints how often each metric was recorded.
func printMetrics(ctx context.Context, reader sdkmetric.Reader) error {
	var data metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &data); err != nil {
		return err
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			d, ok := m.Data.(metricdata.Histogram[float64])
			if !ok {
				continue
			}
			lines := make([]string, 0, len(d.DataPoints))
			for _, p := range d.DataPoints {
				lines = append(lines, fmt.Sprintf("metric %s%s: %d times\n", m.Name, texts(p.Attributes.ToSlice()), p.Count))
			}
			slices.Sort(lines) // the SDK has no order
			fmt.Print(strings.Join(lines, ""))
		}
	}
	return nil
}
