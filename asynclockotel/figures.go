// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/asynclock/asynclock-go/asynclock"
)

// A figure is a number in asynclock.Stats, which is one series of a metric.
type figure struct {
	of         instrument
	attributes []attribute.KeyValue
	field      []int // the path to it
	mode       []int // the path to the Acquisitions that it is part of; nil: it is in none
}

// figures are all numbers in asynclock.Stats that are series.
var figures = findFigures(nil, nil, reflect.TypeFor[asynclock.Stats]())

// findFigures returns the figures in a struct, which is reached by the path. The names in JSON that lead there say which
// series they are.
func findFigures(path []int, names []string, in reflect.Type) (found []figure) {
	for i := range in.NumField() {
		f := in.Field(i)
		path, names := append(slices.Clip(path), i), append(slices.Clip(names), f.Tag.Get("json"))
		switch f.Type.Kind() {
		case reflect.Struct:
			found = append(found, findFigures(path, names, f.Type)...)
		case reflect.Int64:
			if of, attributes := seriesOf(names); of.name != "" {
				found = append(found, figure{of, attributes, path, modePath(path)})
			}
		}
	}
	return found
}

// modePath is the part of the path that leads to the Acquisitions.
func modePath(path []int) []int {
	if reflect.TypeFor[asynclock.Stats]().Field(path[0]).Type == reflect.TypeFor[asynclock.Acquisitions]() {
		return path[:1]
	}
	return nil
}

// seriesOf says which series a number is; none if it follows from others.
func seriesOf(names []string) (of instrument, attributes []attribute.KeyValue) {
	last := names[len(names)-1]
	mode := attribute.String(attrMode, names[0])
	switch where := strings.Join(names[:len(names)-1], "."); {
	case where == "":
		return hooksLeftOut, nil
	case where == "renewals" && last == "calls":
		return renewalCalls, nil
	case where == "renewals":
		return renewals, []attribute.KeyValue{attribute.String(attrOutcome, last)}
	case where == "releases":
		return releasesBad, []attribute.KeyValue{attribute.String(attrOutcome, last)}
	case where == "keys":
		return keysBy, []attribute.KeyValue{attribute.String(attrState, last)}
	case strings.HasSuffix(where, ".acquired"):
		return requestsDecided, []attribute.KeyValue{mode, attribute.String(attrOutcome, "acquired"), attribute.String(attrWay, last)}
	case strings.HasSuffix(where, ".refused"), strings.HasSuffix(where, ".given_up"):
		return requestsDecided, []attribute.KeyValue{mode, attribute.String(attrOutcome, last)}
	case strings.HasSuffix(where, ".ended"):
		return leasesEnded, []attribute.KeyValue{mode, attribute.String(attrEnd, last)}
	case last == "waiting":
		return requestsWaiting, []attribute.KeyValue{mode}
	case last == "held":
		return leasesHeld, []attribute.KeyValue{mode}
	}
	return instrument{}, nil // requested: the sum of the others
}

// in returns the figure's number, and whether the client has ever made a request of its mode.
func (f *figure) in(stats reflect.Value) (n int64, used bool) {
	used = f.mode == nil || stats.FieldByIndex(f.mode).Interface().(asynclock.Acquisitions).Requested > 0 //nolint:forcetypeassert // modePath has looked
	return stats.FieldByIndex(f.field).Int(), used
}
