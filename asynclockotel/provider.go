// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"fmt"
	"reflect"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// A source is where a client's meter comes from.
type source struct {
	meter metric.Meter
	key   any // equal if they report to the same provider
}

// source returns the source for a client that is made now.
func (s *settings) source() (source, error) {
	provider := s.meters
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	meter := provider.Meter(scope)
	if isNil(meter) {
		return source{}, invalid("a meter provider that gives no meter")
	}
	return source{meter, keyOf(provider)}, nil
}

var (
	firstMu sync.Mutex
	first   metric.MeterProvider // the first global one that is a real one
)

// early is the key of the provider that otel.GetMeterProvider returns before the program has set one. It hands all on
// to the first that is set, so this has the same key.
type early struct{}

// keyOf returns the key of a provider.
func keyOf(provider metric.MeterProvider) any {
	if !reflect.ValueOf(provider).Comparable() {
		return new(byte) // it is like no other
	}
	if isEarly(provider) {
		return early{}
	}
	firstMu.Lock()
	defer firstMu.Unlock()
	if first == nil && provider == otel.GetMeterProvider() {
		first = provider
	}
	if provider == first {
		return early{}
	}
	return provider
}

// isEarly reports whether the provider hands all on to another that is set later. Its type has no exported name.
func isEarly(provider metric.MeterProvider) bool {
	return fmt.Sprintf("%T", provider) == "*global.meterProvider"
}
