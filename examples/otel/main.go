// SPDX-License-Identifier: Apache-2.0

// Command otel makes spans and metrics of locks with OpenTelemetry, and prints them. locks.go is what to copy: hooks of
// a client. This file has an order that is saved, one that another process has, and one whose lease is lost.
//
// Use it to see how long requests wait for their keys, how long they hold them, and how leases end. A span has the key. A
// metric has the class of the key only.
//
// Telemetry never decides anything: the fence in front of the order refuses a late write.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/asynclock/asynclock-go/asynclock"
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
	// In production the exporter and the reader are those of OTLP, or of Prometheus.
	traces := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spanPrinter{}))
	reader := sdkmetric.NewManualReader()
	metrics := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	observed, err := hooks(traces, metrics)
	if err != nil {
		return err
	}
	locks, err := connect(asynclock.WithHooks(observed), asynclock.WithClass("order"))
	if err != nil {
		return err
	}
	other, err := connect()
	if err != nil {
		return err
	}
	err = errors.Join(saved(ctx, locks), held(ctx, locks, other), lost(ctx, locks, other))
	err = errors.Join(err, locks.Close(ctx), other.Close(ctx)) // Close waits for the hooks
	return errors.Join(err, printMetrics(ctx, reader), traces.Shutdown(ctx), metrics.Shutdown(ctx))
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
	}, asynclock.WithWait(0))
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
