// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A figured series is one by its name and attributes.
type figured struct {
	value   float64 // of a histogram how many values it has
	longest float64 // of a histogram the largest value
}

// collect collects all series, by name and attributes.
func collect(ctx context.Context, reader sdkmetric.Reader) (map[string]figured, error) {
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
		return nil, err
	}
	all := make(map[string]figured)
	add := func(name string, of attribute.Set, f figured) {
		all[name+" "+of.Encoded(attribute.DefaultEncoder())] = f
	}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, figured{value: float64(p.Value)})
				}
			case metricdata.Sum[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, figured{value: p.Value})
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					add(m.Name, p.Attributes, figured{value: p.Value})
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					longest, _ := p.Max.Value()
					add(m.Name, p.Attributes, figured{float64(p.Count), longest})
				}
			default:
				return nil, fmt.Errorf("%s: got %T", m.Name, m.Data)
			}
		}
	}
	return all, nil
}

// shown is a span as one line: its name, attributes, status, links and events.
func shown(span sdktrace.ReadOnlySpan) string {
	set := attribute.NewSet(span.Attributes()...)
	var line strings.Builder
	fmt.Fprintf(&line, "%s %s", span.Name(), set.Encoded(attribute.DefaultEncoder()))
	if s := span.Status(); s.Code != codes.Unset {
		fmt.Fprintf(&line, " %s(%s)", s.Code, s.Description)
	}
	for range span.Links() {
		line.WriteString(" link")
	}
	for _, e := range span.Events() {
		line.WriteString(" " + e.Name)
	}
	return line.String()
}
