// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A group is clients whose figures are reported as one, because they have the same meter and attributes. If each were reported
// by itself, collectors would take the last for all.
type group struct {
	key groupKey

	mu      sync.Mutex
	clients []*asynclock.Client
	past    []int64 // counts of clients that are closed, so that no counter goes back; by figure
	wasUsed []bool
	trust   metric.Float64Observable
	on      map[string]metric.Int64Observable // instruments by name
	common  metric.MeasurementOption
	series  []metric.MeasurementOption // by figure
	stop    metric.Registration
}

type groupKey struct {
	meter      metric.Meter
	attributes attribute.Distinct
}

var (
	groupsMu sync.Mutex
	groups   = make(map[groupKey]*group)
)

// join adds a client to the group of its meter and attributes, and returns what removes it.
func join(c *asynclock.Client, meter metric.Meter, attributes attribute.Set) (leave func(), err error) {
	groupsMu.Lock()
	defer groupsMu.Unlock()
	key := groupKey{meter, attributes.Equivalent()}
	var g *group
	shared := reflect.ValueOf(meter).Comparable()
	if shared {
		g = groups[key]
	}
	if g == nil {
		g = &group{key: key, past: make([]int64, len(figures)), wasUsed: make([]bool, len(figures))}
		if err := g.register(attributes); err != nil {
			return nil, err
		}
		if shared {
			groups[key] = g
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clients = append(g.clients, c)
	return func() { g.leave(c) }, nil
}

// leave removes a client that is closed. Its counts stay as long as the process, so that no counter goes back.
func (g *group) leave(c *asynclock.Client) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.clients, c)
	if i < 0 {
		return
	}
	g.clients = slices.Delete(g.clients, i, i+1)
	stats := reflect.ValueOf(c.Stats())
	for i := range figures {
		if n, used := figures[i].in(stats); used && figures[i].of.kind == counter {
			g.past[i] += n
			g.wasUsed[i] = true
		}
	}
}

// register makes the group's instruments, and has them read together.
func (g *group) register(attributes attribute.Set) error {
	g.common = metric.WithAttributeSet(attributes)
	for i := range figures {
		g.series = append(g.series, metric.WithAttributeSet(with(attributes, figures[i].attributes...)))
	}
	g.on = make(map[string]metric.Int64Observable)
	var all []metric.Observable
	var errs []error
	for _, in := range instruments {
		if !isOfClients(in) {
			continue
		}
		o, err := observable(g.key.meter, in)
		errs = append(errs, err)
		g.on[in.name] = o
		all = append(all, o)
	}
	trust, err := g.key.meter.Float64ObservableGauge(leastTrust.name, metric.WithUnit(leastTrust.unit), metric.WithDescription(leastTrust.description))
	g.trust = trust
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	g.stop, err = g.key.meter.RegisterCallback(g.observe, append(all, trust)...)
	return err
}

// isOfClients reports whether the instrument is read from the whole numbers in asynclock.Stats.
func isOfClients(in instrument) bool {
	return in.name == clientsDeaf.name || in.name == clientsFailing.name ||
		slices.ContainsFunc(figures, func(f figure) bool { return f.of.name == in.name })
}

func observable(meter metric.Meter, in instrument) (metric.Int64Observable, error) {
	if in.kind == counter {
		return meter.Int64ObservableCounter(in.name, metric.WithUnit(in.unit), metric.WithDescription(in.description))
	}
	return meter.Int64ObservableUpDownCounter(in.name, metric.WithUnit(in.unit), metric.WithDescription(in.description))
}

// observe reports the sums over all clients of the group.
func (g *group) observe(_ context.Context, o metric.Observer) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	sums, used := slices.Clone(g.past), slices.Clone(g.wasUsed)
	var deaf, failing int64
	trust := 1.0
	for _, c := range g.clients {
		stats := c.Stats()
		trust = min(trust, stats.LeastTrust)
		if stats.Deaf {
			deaf++
		}
		if stats.Failing {
			failing++
		}
		read := reflect.ValueOf(stats)
		for i := range figures {
			n, ofThis := figures[i].in(read)
			sums[i] += n
			used[i] = used[i] || ofThis
		}
	}
	for i := range figures {
		if used[i] {
			o.ObserveInt64(g.on[figures[i].of.name], sums[i], g.series[i])
		}
	}
	o.ObserveInt64(g.on[clientsDeaf.name], deaf, g.common)
	o.ObserveInt64(g.on[clientsFailing.name], failing, g.common)
	o.ObserveFloat64(g.trust, trust, g.common)
	return nil
}

// with returns the set with more attributes.
func with(all attribute.Set, more ...attribute.KeyValue) attribute.Set {
	return attribute.NewSet(append(all.ToSlice(), more...)...)
}
