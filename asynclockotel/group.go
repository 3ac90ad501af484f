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

// A group is clients whose figures are reported as one, because they have the same meter provider and attributes. If each were reported
// by itself, collectors would take the last for all.
type group struct {
	classes classes

	alone bool // no other client can join, and its series end with its client

	registering sync.Mutex // while a collection goes on it may be held for long
	registered  metric.Registration
	trust       metric.Float64Observable
	on          map[string]metric.Int64Observable // instruments by name
	common      metric.MeasurementOption
	series      []metric.MeasurementOption // by figure

	mu      sync.Mutex
	clients []*asynclock.Client
	left    []*asynclock.Client // closed since metrics were collected
	past    []int64             // counts of those that were closed before; by figure
	wasUsed []bool
}

type groupKey struct {
	provider   any
	attributes attribute.Distinct
}

var (
	groupsMu sync.Mutex
	groups   = make(map[groupKey]*group) // never removed: a program has few
)

// join adds a client to the group of its provider and attributes.
func join(c *asynclock.Client, from source, attributes attribute.Set) (*group, error) {
	g := groupOf(groupKey{from.key, attributes.Equivalent()})
	if err := g.register(from.meter, attributes); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Contains(g.clients, c) {
		return nil, invalid("a client that is given Observe twice")
	}
	g.clients = append(g.clients, c)
	return g, nil
}

// groupOf returns the group with the key, or a new one for a provider that is like no other.
func groupOf(key groupKey) *group {
	groupsMu.Lock()
	defer groupsMu.Unlock()
	g := groups[key]
	if g == nil {
		g = &group{alone: key.provider == nil, past: make([]int64, len(figures)), wasUsed: make([]bool, len(figures))}
		if !g.alone {
			groups[key] = g
		}
	}
	return g
}

// leave notes that a client is closed. It is read once more when metrics are collected, because calls that Close
// has ended may not have returned yet.
func (g *group) leave(c *asynclock.Client) {
	if g.alone {
		_ = g.registered.Unregister()
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.clients, c)
	if i < 0 {
		return
	}
	g.clients = slices.Delete(g.clients, i, i+1)
	if g.left = append(g.left, c); len(g.left) > mostLeft { // nobody collects
		g.keepLocked(g.left[0])
		g.left = slices.Delete(g.left, 0, 1)
	}
}

// mostLeft is how many closed clients are kept until metrics are collected.
const mostLeft = 16

// keepLocked keeps the counts of a closed client. They stay as long as the process, so that no counter goes back.
func (g *group) keepLocked(c *asynclock.Client) {
	stats := reflect.ValueOf(c.Stats())
	for i := range figures {
		if n, used := figures[i].in(stats); used && figures[i].of.kind == counter {
			g.past[i] += n
			g.wasUsed[i] = true
		}
	}
}

// register makes the group's instruments, if there are none yet, and has them read together.
func (g *group) register(meter metric.Meter, attributes attribute.Set) error {
	g.registering.Lock()
	defer g.registering.Unlock()
	if g.registered != nil {
		return nil
	}
	g.common, g.series = metric.WithAttributeSet(attributes), nil
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
		o, err := observable(meter, in)
		errs = append(errs, err)
		g.on[in.name] = o
		all = append(all, o)
	}
	trust, err := meter.Float64ObservableGauge(leastTrust.name, metric.WithUnit(leastTrust.unit), metric.WithDescription(leastTrust.description))
	g.trust = trust
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	registered, err := meter.RegisterCallback(g.observe, append(all, trust)...)
	if err == nil {
		g.registered = registered
	}
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
	for _, c := range g.left {
		g.keepLocked(c)
	}
	g.left = nil
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
