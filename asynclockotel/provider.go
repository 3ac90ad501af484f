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
	key   any // equal for clients that report to the same provider; nil: this one is like no other
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
	return source{meter, keyOf(provider, meter)}, nil
}

// early is the key of the provider that otel.GetMeterProvider returns before the program has set one, and of
// that which is set then.
type early struct{}

var (
	earlyMu       sync.Mutex
	earlyProvider metric.MeterProvider // nil: no client came so early
)

// keyOf returns the key of a provider that gives the meter.
func keyOf(provider metric.MeterProvider, meter metric.Meter) any {
	if !reflect.ValueOf(provider).Comparable() || !reflect.ValueOf(meter).Comparable() {
		return nil
	}
	earlyMu.Lock()
	defer earlyMu.Unlock()
	if isEarly(provider) {
		earlyProvider = provider
		return early{}
	}
	if earlyProvider != nil && earlyProvider.Meter(scope) == meter { // it gives the meters of the one that was set
		return early{}
	}
	return provider
}

// isEarly reports whether the provider hands all on to another that is set later. Its type has no exported name.
func isEarly(provider metric.MeterProvider) bool {
	return fmt.Sprintf("%T", provider) == "*global.meterProvider"
}
