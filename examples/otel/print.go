// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
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

// printCounts prints what Prometheus gets, as far as it is the same in each run: how many requests came to what, and how many
// leases lasted until when.
func printCounts(metrics prometheus.Gatherer) error {
	families, err := metrics.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels strings.Builder
			for _, l := range m.GetLabel() {
				if strings.HasPrefix(l.GetName(), "asynclock_") && l.GetName() != "asynclock_store" {
					fmt.Fprintf(&labels, " %s=%s", l.GetName(), l.GetValue())
				}
			}
			switch count := m.GetCounter().GetValue(); {
			case family.GetName() == "asynclock_request_decided_total" && count > 0:
				fmt.Printf("%s%s: %v\n", family.GetName(), &labels, count)
			case family.GetName() == "asynclock_hold_duration_seconds":
				fmt.Printf("%s%s: %d leases\n", family.GetName(), &labels, m.GetHistogram().GetSampleCount())
			}
		}
	}
	return nil
}
