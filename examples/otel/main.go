// SPDX-License-Identifier: Apache-2.0

// Command otel has OpenTelemetry see its locks: spans are printed, and metrics are those that Prometheus gets. An order is
// saved, one is in another process' hands, and of one the lease is lost.
//
// Use it to see how long requests wait for their keys, how long they hold them, and how leases end. A trace has
// the lease that a request waited for. No metric has a key, only what the key is of.
//
// Telemetry never decides anything: the fence in front of the order refuses a late write.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclockotel"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

func main() {
	url := flag.String("redis", "", "where the locks are, as redis://localhost:6379; without it: in this process")
	flag.Parse()
	if err := run(context.Background(), connector(*url)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, connect func(...asynclock.ClientOption) (*asynclock.Client, error)) error {
	// In production the exporter of traces is that of OTLP, say, and Prometheus reads a page: promhttp.HandlerFor(registry, …).
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spanPrinter{}))
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return err
	}
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))

	locks, err := connect(asynclock.WithClass("order"), asynclockotel.Observe(
		asynclockotel.WithMeterProvider(metrics), asynclockotel.WithTracerProvider(traces),
	))
	if err != nil {
		return err
	}
	other, err := connect()
	if err != nil {
		return err
	}
	ctx, request := traces.Tracer("shop").Start(ctx, "request")
	err = errors.Join(saved(ctx, locks), held(ctx, locks, other), lost(ctx, locks, other))
	err = errors.Join(err, locks.Close(ctx), other.Close(ctx)) // Close waits until all has been told
	request.End()
	return errors.Join(err, printCounts(registry), traces.Shutdown(ctx), metrics.Shutdown(ctx))
}

// orders stands for your database, and refuses a token that is older than the last.
var orders fence.Gate

// saved saves an order.
func saved(ctx context.Context, locks *asynclock.Client) error {
	return locks.WithLock(ctx, "order:51", func(ctx context.Context, lease *asynclock.Lease) error {
		return orders.Do(ctx, lease, func() error { return nil })
	})
}

// held skips an order that another process has.
func held(ctx context.Context, locks *asynclock.Client, other *asynclock.Client) error {
	lease, err := other.Lock(ctx, "order:52")
	if err != nil {
		return err
	}
	err = locks.WithLock(ctx, "order:52", func(context.Context, *asynclock.Lease) error {
		return errors.New("two holders")
	}, asynclock.WithWait(20*time.Millisecond))
	if errors.Is(err, asynclock.ErrHeld) {
		err = nil
	}
	return errors.Join(err, lease.Unlock(ctx))
}

// lost loses the lease of an order at work: an operator takes it.
func lost(ctx context.Context, locks *asynclock.Client, other *asynclock.Client) error {
	err := locks.WithLock(ctx, "order:53", func(ctx context.Context, lease *asynclock.Lease) error {
		if _, err := other.ForceUnlock(ctx, lease.Key(), lease.Token()); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, asynclock.ErrLost) {
		return fmt.Errorf("got %w, want a loss", err)
	}
	return nil
}

// connector returns what makes the client of a process: of the Redis at url, or, without one, of a store in
// memory, which all clients share as they would a server.
func connector(url string) func(...asynclock.ClientOption) (*asynclock.Client, error) {
	if url == "" {
		store := memstore.New()
		return func(options ...asynclock.ClientOption) (*asynclock.Client, error) {
			return asynclock.New(store, options...)
		}
	}
	return func(options ...asynclock.ClientOption) (*asynclock.Client, error) {
		store, err := redisstore.OpenURL(url)
		if err != nil {
			return nil, err
		}
		return asynclock.New(store, append(options, asynclock.WithOwnedStore())...)
	}
}
