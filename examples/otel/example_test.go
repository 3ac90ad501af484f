// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclockotel"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// For an application that has Prometheus' client, and nothing of OpenTelemetry.
func Example_prometheus() {
	store := memstore.New()

	exporter, err := otelprometheus.New() // adds to Prometheus' default registry
	if err != nil {
		log.Fatal(err)
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	locks, err := asynclock.New(store, asynclockotel.Observe(asynclockotel.WithMeterProvider(meters)))
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(context.Background())

	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "asynclock_trust") {
			fmt.Println(family.GetName(), family.GetMetric()[0].GetGauge().GetValue())
		}
	}
	// Output: asynclock_trust_least_ratio 1
}
