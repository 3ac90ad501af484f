// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/once"
)

// ObserveJob makes metrics of the runs of a job, which [once.WithStats] counts. The name is that of the job, one of few.
// Of the options the meter provider and the attributes count. Stop ends it. Two with the same name at a time are
// [asynclock.ErrInvalidOption].
func ObserveJob(name string, stats *once.Stats, options ...Option) (stop func() error, err error) {
	if stats == nil {
		return nil, invalid("nil stats of a job")
	}
	return observeNumbers(attribute.String(attrJob, name), options, func() []number {
		c := stats.Counts()
		return []number{
			{jobRuns, attrOutcome, "done", float64(c.Done)},
			{jobRuns, attrOutcome, "failed", float64(c.Failed)},
			{jobRuns, attrOutcome, "unfinished", float64(c.Unfinished)},
			{jobRunning, "", "", float64(c.Running)},
			{jobCalls, attrOutcome, "skipped", float64(c.Skipped)},
			{jobCalls, attrOutcome, "held", float64(c.Held)},
			{jobCalls, attrOutcome, "canceled", float64(c.Canceled)},
			{jobCalls, attrOutcome, "error", float64(c.Errors)},
			{jobMissed, "", "", float64(c.Missed)},
			{jobAgain, "", "", float64(c.Repeated)},
			{jobTime, "", "", c.Took.Seconds()},
		}
	})
}

// ObserveElection makes metrics of the terms of this process, and of what its observers see of all, which [elect.WithStats]
// counts. The name is that of the election, one of few. Of the options the meter provider and the attributes count.
// Stop ends it. Two with the same name at a time are [asynclock.ErrInvalidOption].
func ObserveElection(name string, stats *elect.Stats, options ...Option) (stop func() error, err error) {
	if stats == nil {
		return nil, invalid("nil stats of an election")
	}
	return observeNumbers(attribute.String(attrLeader, name), options, func() []number {
		c := stats.Counts()
		return []number{
			{terms, attrEnd, "resigned", float64(c.Resigned)},
			{terms, attrEnd, "lost", float64(c.Lost)},
			{leading, "", "", float64(c.Leading)},
			{ledTime, "", "", c.Led.Seconds()},
			{leaderlessTime, "", "", c.Leaderless.Seconds()},
			{unknownTime, "", "", c.Unknown.Seconds()},
		}
	})
}

// A number is what one series has now.
type number struct {
	of              instrument
	attribute, word string // empty: none
	value           float64
}

// observeNumbers has the numbers read whenever metrics are collected.
func observeNumbers(who attribute.KeyValue, options []Option, read func() []number) (stop func() error, err error) {
	s, err := newSettings(options)
	if err != nil {
		return nil, err
	}
	if name := who.Value.AsString(); name == "" || !utf8.ValidString(name) {
		return nil, invalid("a job or an election without a name in UTF-8")
	}
	from, err := s.source()
	if err != nil {
		return nil, err
	}
	base := slices.Concat(s.attributes, []attribute.KeyValue{who})
	set := with(*attribute.EmptySet(), base...)
	forget, err := claim(groupKey{from.key, set.Equivalent()})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			forget()
		}
	}()
	on := make(map[string]metric.Float64Observable)
	var all []metric.Observable
	var errs []error
	for _, n := range read() {
		if on[n.of.name] != nil {
			continue
		}
		o, err := observableNumber(from.meter, n.of)
		errs = append(errs, err)
		on[n.of.name], all = o, append(all, o)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("asynclockotel: %w", err)
	}
	registered, err := from.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, n := range read() {
			attributes := base
			if n.attribute != "" {
				attributes = slices.Concat(base, []attribute.KeyValue{attribute.String(n.attribute, n.word)})
			}
			o.ObserveFloat64(on[n.of.name], n.value, metric.WithAttributes(attributes...))
		}
		return nil
	}, all...)
	if err != nil {
		return nil, fmt.Errorf("asynclockotel: %w", err)
	}
	return func() error {
		defer forget()
		return registered.Unregister()
	}, nil
}

var claimed = make(map[groupKey]bool) // jobs and elections, under groupsMu

// claim fails if the job or election is observed already: two with one name would overwrite each other.
func claim(key groupKey) (forget func(), err error) {
	groupsMu.Lock()
	defer groupsMu.Unlock()
	if claimed[key] {
		return nil, invalid("a name that is observed already")
	}
	if key.provider != nil {
		claimed[key] = true
	}
	return sync.OnceFunc(func() {
		groupsMu.Lock()
		defer groupsMu.Unlock()
		delete(claimed, key)
	}), nil
}

func observableNumber(meter metric.Meter, in instrument) (metric.Float64Observable, error) {
	if in.kind == counter {
		return meter.Float64ObservableCounter(in.name, metric.WithUnit(in.unit), metric.WithDescription(in.description))
	}
	return meter.Float64ObservableUpDownCounter(in.name, metric.WithUnit(in.unit), metric.WithDescription(in.description))
}
