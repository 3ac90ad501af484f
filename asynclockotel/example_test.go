// SPDX-License-Identifier: Apache-2.0

package asynclockotel_test

import (
	"context"
	"fmt"
	"log"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclockotel"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// The global providers get all.
func Example() {
	store := memstore.New()

	locks, err := asynclock.New(store, asynclockotel.Observe())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(context.Background())
	fmt.Println(locks.Stats().Store)
	// Output: memory
}

// In production the reader is that of an exporter, and there is one provider for all of the program. Observe without options takes
// the global one.
func ExampleObserve() {
	ctx := context.Background()
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))

	locks, err := asynclock.New(memstore.New(), asynclockotel.Observe(
		asynclockotel.WithMeterProvider(meters),
		asynclockotel.WithClassOf(asynclockotel.BeforeColon),
	))
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	err = locks.WithLock(ctx, "order:42", func(context.Context, *asynclock.Lease) error { return nil })
	if err != nil {
		log.Fatal(err)
	}

	show(ctx, reader, "asynclock.hold.duration")
	// Output: asynclock.hold.duration of class order: 1
}

func ExampleObserveJob() {
	ctx := context.Background()
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))

	var runs once.Stats // given to once.Do by once.WithStats
	stop, err := asynclockotel.ObserveJob("report", &runs, asynclockotel.WithMeterProvider(meters))
	if err != nil {
		log.Fatal(err)
	}
	show(ctx, reader, "asynclock.job.missed")
	if err := stop(); err != nil {
		log.Fatal(err)
	}
	// Output: asynclock.job.missed of job report: 0
}

// show prints a metric.
func show(ctx context.Context, reader sdkmetric.Reader, name string) {
	var all metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &all); err != nil {
		log.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				class, _ := data.DataPoints[0].Attributes.Value("asynclock.class")
				fmt.Printf("%s of class %s: %d\n", name, class.AsString(), data.DataPoints[0].Count)
			case metricdata.Sum[float64]:
				job, _ := data.DataPoints[0].Attributes.Value("asynclock.job")
				fmt.Printf("%s of job %s: %v\n", name, job.AsString(), data.DataPoints[0].Value)
			}
		}
	}
}
