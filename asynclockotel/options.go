// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/asynclock/asynclock-go/asynclock"
)

// An Option changes what [Observe] does.
type Option func(*settings) error

type settings struct {
	meters     metric.MeterProvider // nil: the global one of the moment
	tracers    trace.TracerProvider
	attributes []attribute.KeyValue
	classOf    func(key string) string
	maxClasses int
	keyOnSpans func(key string) string
	leastWait  time.Duration
	histograms bool
}

func newSettings(options []Option) (settings, error) {
	s := settings{maxClasses: 64, leastWait: time.Millisecond, histograms: true}
	var errs []error
	for _, o := range options {
		if o == nil {
			errs = append(errs, invalid("nil option"))
			continue
		}
		errs = append(errs, o(&s))
	}
	if s.tracers == nil {
		s.tracers = otel.GetTracerProvider()
	}
	return s, errors.Join(errs...)
}

// guarded returns a function of the application that may panic. Telemetry must not end a process, so it says nothing then.
func guarded(f func(key string) string) func(key string) string {
	return func(key string) (said string) {
		defer func() {
			if recover() != nil {
				said = otherClass
			}
		}()
		return f(key)
	}
}

// isNil reports whether an interface has nothing in it, or a nil pointer.
func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}

func invalid(what string) error {
	return fmt.Errorf("%w: asynclockotel: %s", asynclock.ErrInvalidOption, what)
}

// WithMeterProvider sets who makes the meter. The default is the global one.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(s *settings) error {
		if isNil(p) {
			return invalid("nil meter provider")
		}
		s.meters = p
		return nil
	}
}

// WithTracerProvider sets who makes the tracer. The default is the global one.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(s *settings) error {
		if isNil(p) {
			return invalid("nil tracer provider")
		}
		s.tracers = p
		return nil
	}
}

// WithAttributes adds attributes to all metrics and spans, such as the name of a client. Clients with other attributes have
// series of their own, which stay as long as the process, so there should be few. The counts of clients with the same ones
// are added up.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return func(s *settings) error {
		for _, a := range attributes {
			if !a.Valid() || !utf8.ValidString(string(a.Key)) || !utf8.ValidString(a.Value.String()) {
				return invalid(fmt.Sprintf("attribute %q without a name or a value in UTF-8", a.Key))
			}
		}
		s.attributes = append(s.attributes, attributes...)
		return nil
	}
}

// WithClassOf sets a function that finds the class of a key, for requests that have none by [asynclock.WithClass]. The
// function must be quick, and safe for concurrent use. If it panics, or returns what WithClass would not take, the class
// is _other. See [BeforeColon].
func WithClassOf(classOf func(key string) string) Option {
	return func(s *settings) error {
		if classOf == nil {
			return invalid("nil function for classes")
		}
		s.classOf = guarded(classOf)
		return nil
	}
}

// BeforeColon returns what a key has before its first colon, and nothing if it has none: the class of order:42 is order.
func BeforeColon(key string) string {
	class, _, found := strings.Cut(key, ":")
	if !found {
		return ""
	}
	return class
}

// WithMaxClasses sets how many classes are told apart, from 1 to 128. All further ones are called _other. The default
// is 64. Clients of one meter provider with the same attributes, and stores of one kind, have them in common.
func WithMaxClasses(n int) Option {
	return func(s *settings) error {
		if n < 1 || n > 128 {
			return invalid(fmt.Sprintf("%d classes, want 1 to 128", n))
		}
		s.maxClasses = n
		return nil
	}
}

// WithKeyOnSpans puts what a function makes of the key on spans, as asynclock.key. The default is no key, because
// keys may name customers.
func WithKeyOnSpans(shown func(key string) string) Option {
	return func(s *settings) error {
		if shown == nil {
			return invalid("nil function for keys")
		}
		s.keyOnSpans = guarded(shown)
		return nil
	}
}

// WithLeastWait sets from what time on a wait for others has a span. The default is a millisecond.
func WithLeastWait(d time.Duration) Option {
	return func(s *settings) error {
		if d < 0 {
			return invalid(fmt.Sprintf("least wait %v", d))
		}
		s.leastWait = d
		return nil
	}
}

// WithoutHistograms leaves the histograms out. Then metrics cost the locks nothing, and hooks are left for traces.
func WithoutHistograms() Option {
	return func(s *settings) error {
		s.histograms = false
		return nil
	}
}
