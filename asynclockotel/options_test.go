// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"errors"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

func TestClassesAreBounded(t *testing.T) {
	onSite(t, func(s *site) {
		c := s.client(WithMaxClasses(2), WithClassOf(BeforeColon), WithAttributes(attribute.String("team", "shop")))
		for _, key := range []string{"a:1", "b:1", "c:1", "d:1", "a:2", "none"} {
			s.unlock(s.lock(s.Context(), c, key))
		}
		const rest = "asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.store=memory,team=shop"
		s.wantSeries("asynclock.hold.", map[string]float64{
			"asynclock.hold.duration asynclock.class=a," + rest:      2,
			"asynclock.hold.duration asynclock.class=b," + rest:      1,
			"asynclock.hold.duration asynclock.class=_other," + rest: 2,
			"asynclock.hold.duration " + rest:                        1,
		})
	})
}

func TestWithoutHistograms(t *testing.T) {
	onSite(t, func(s *site) {
		c := s.client(WithoutHistograms(), WithLeastWait(0))
		s.unlock(s.lock(s.Context(), c, "key"))
		s.wantSeries("asynclock.wait.", nil)
		s.wantSeries("asynclock.hold.", nil)
		s.wantSeries("asynclock.store.", nil)
	})
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]Option{
		"nil":            nil,
		"meters":         WithMeterProvider(nil),
		"tracers":        WithTracerProvider(nil),
		"class function": WithClassOf(nil),
		"key function":   WithKeyOnSpans(nil),
		"no classes":     WithMaxClasses(0),
		"many classes":   WithMaxClasses(1001),
		"least wait":     WithLeastWait(-1),
		"attribute":      WithAttributes(attribute.KeyValue{}),
	} {
		if c, err := asynclock.New(memstore.New(), Observe(option)); !errors.Is(err, asynclock.ErrInvalidOption) || c != nil {
			t.Errorf("%s: got %v, %v; want no client, ErrInvalidOption", name, c, err)
		}
	}
	for name, observe := range map[string]func() (func() error, error){
		"nil stats of a job":       func() (func() error, error) { return ObserveJob("a", nil) },
		"nil stats of an election": func() (func() error, error) { return ObserveElection("a", nil) },
		"no name":                  func() (func() error, error) { return ObserveJob("", new(once.Stats)) },
		"bad option":               func() (func() error, error) { return ObserveJob("a", new(once.Stats), nil) },
	} {
		if stop, err := observe(); !errors.Is(err, asynclock.ErrInvalidOption) || stop != nil {
			t.Errorf("%s: got %v, want ErrInvalidOption", name, err)
		}
	}
}

// otherStore is a store of another kind.
type otherStore struct{ store.Store }

func (o otherStore) Features() store.Features {
	f := o.Store.Features()
	f.Name = "other"
	return f
}

func TestAnOptionIsForOneKindOfStore(t *testing.T) {
	t.Parallel()
	o := Observe(WithMeterProvider(noop.NewMeterProvider()))
	c, err := asynclock.New(memstore.New(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer closeNow(c)
	if _, err := asynclock.New(otherStore{memstore.New()}, o); !errors.Is(err, asynclock.ErrInvalidOption) {
		t.Errorf("got %v, want ErrInvalidOption", err)
	}
}
