// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclocktest"
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
		"many classes":   WithMaxClasses(129),
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
		"a name twice": func() (func() error, error) {
			stop, err := ObserveJob("twice", new(once.Stats), WithMeterProvider(noop.NewMeterProvider()))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := stop(); err != nil {
					t.Error(err)
				}
			}()
			return ObserveJob("twice", new(once.Stats), WithMeterProvider(noop.NewMeterProvider()))
		},
		"no name":    func() (func() error, error) { return ObserveJob("", new(once.Stats)) },
		"bad option": func() (func() error, error) { return ObserveJob("a", new(once.Stats), nil) },
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

func TestAnOptionIsForAnyClients(t *testing.T) {
	onSite(t, func(s *site) {
		o := Observe(s.seen...)
		a := s.clientWith(o)
		s.store = otherStore{memstore.New()}
		b := s.clientWith(o)
		for _, c := range []*asynclock.Client{a, b} {
			s.unlock(s.lock(s.Context(), c, "key"))
		}
		s.wantSeries("asynclock.lease.", map[string]float64{
			"asynclock.lease.ended asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.store=memory": 1,
			"asynclock.lease.ended asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.store=other":  1,
		})
	})
}

// Two of a client count all twice if they report to one provider. Otherwise each has its own.
func TestTwoOptionsOfOneClient(t *testing.T) {
	onSite(t, func(s *site) {
		one, two := Observe(s.seen...), Observe(s.seen...)
		if _, err := asynclock.New(s.store, one, two); !errors.Is(err, asynclock.ErrInvalidOption) {
			t.Errorf("got %v, want ErrInvalidOption", err)
		}
		ctx := s.traced()
		spans := tracetest.NewSpanRecorder()
		c, err := asynclock.New(s.store, asynclock.WithoutLogger(), one, Observe(
			WithMeterProvider(noop.NewMeterProvider()), WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))))
		if err != nil {
			t.Fatal(err)
		}
		defer closeNow(c)
		s.unlock(s.lock(ctx, c, "key"))
		synctest.Wait()
		for name, r := range map[string]*tracetest.SpanRecorder{"first": s.spans, "second": spans} {
			if got := len(r.Ended()); got != 1 {
				t.Errorf("%s: got %d spans that ended, want 1", name, got)
			}
		}
	})
}

// Functions of the application may panic, and return what no metric could have.
func TestCarelessFunctions(t *testing.T) {
	onSite(t, func(s *site) {
		c := s.client(
			WithClassOf(func(key string) string { return key[:5] }),
			WithKeyOnSpans(func(key string) string { return key[:5] }),
			WithLeastWait(0),
		)
		s.unlock(s.lock(s.traced(), c, "key"))
		s.unlock(s.lock(s.traced(), c, "abcd\u00e9"))
		s.unlock(s.lock(s.traced(), c, "order:1"))
		const rest = ",asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.store=memory"
		s.wantSeries("asynclock.hold.", map[string]float64{
			"asynclock.hold.duration asynclock.class=_other" + rest: 2,
			"asynclock.hold.duration asynclock.class=order" + rest:  1,
		})
	})
}

// Counts of calls that Close has ended are in the metrics, as those that end before it.
func TestTheEndIsCounted(t *testing.T) {
	onSite(t, func(s *site) {
		c := s.client()
		s.lock(s.Context(), c, "key")
		go func() {
			if _, err := c.Lock(context.Background(), "key"); !errors.Is(err, asynclock.ErrClosed) {
				t.Errorf("a call that Close ends: got %v, want ErrClosed", err)
			}
		}()
		synctest.Wait()
		closeNow(c)
		synctest.Wait()
		s.wantSeries("asynclock.request.", map[string]float64{
			"asynclock.request.decided asynclock.mode=exclusive,asynclock.outcome=acquired,asynclock.store=memory,asynclock.way=at_once": 1,
			"asynclock.request.decided asynclock.mode=exclusive,asynclock.outcome=closed,asynclock.store=memory":                         1,
		})
		for range 2 * mostLeft { // nobody collects
			s.lockOnce()
		}
		if got := s.series()["asynclock.lease.ended asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.store=memory"]; got != 2*mostLeft {
			t.Errorf("leases of clients that were closed: got %v, want %d", got, 2*mostLeft)
		}
	})
}

// Clients from before and after the program has set its provider are one group. When it sets another, that gets what is
// counted from then on.
func TestTheGlobalProvider(t *testing.T) {
	if os.Getenv("ASYNCLOCKOTEL_OWN_PROCESS") == "" { // a process sets it once, however often it runs this test
		t.Parallel()
		self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheGlobalProvider$", "-test.timeout=1m")
		self.Env = append(os.Environ(), "ASYNCLOCKOTEL_OWN_PROCESS=1")
		if said, err := self.CombinedOutput(); err != nil || !strings.Contains(string(said), "PASS") {
			t.Errorf("got %v\n%s", err, said)
		}
		return
	}
	synctest.Test(t, func(t *testing.T) {
		s := &site{T: t, store: memstore.New(), reader: sdkmetric.NewManualReader()}
		faulty := asynclocktest.Wrap(s.store)
		s.store = faulty
		early := s.client()
		otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader)))
		late := s.client()
		faulty.Every(asynclocktest.Match(asynclocktest.Renew.Any).From(0), asynclocktest.Fail(store.ErrUnreachable))
		s.lock(t.Context(), early, "a")
		s.lock(t.Context(), late, "b")
		time.Sleep(7 * time.Second)
		synctest.Wait()
		if got := s.series()["asynclock.trust.least asynclock.store=memory"]; got > 0.5 {
			t.Errorf("least trust: got %v, want that of the early client", got)
		}
		if got := s.series()["asynclock.lease.held asynclock.mode=exclusive,asynclock.store=memory"]; got != 2 {
			t.Errorf("leases: got %v, want 2", got)
		}
		s.reader = sdkmetric.NewManualReader()
		otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader)))
		s.lock(t.Context(), s.client(), "c")
		if got := s.series()["asynclock.lease.held asynclock.mode=exclusive,asynclock.store=memory"]; got != 1 {
			t.Errorf("leases for another provider: got %v, want 1", got)
		}
	})
}

// An exporter may refuse all metrics because of a text that is not UTF-8.
func TestNothingButUTF8(t *testing.T) {
	onSite(t, func(s *site) {
		if _, err := asynclock.New(s.store, Observe(WithAttributes(attribute.String("team", "\xff")))); !errors.Is(err, asynclock.ErrInvalidOption) {
			t.Errorf("attribute: got %v, want ErrInvalidOption", err)
		}
		if _, err := ObserveJob("\xff", new(once.Stats)); !errors.Is(err, asynclock.ErrInvalidOption) {
			t.Errorf("name: got %v, want ErrInvalidOption", err)
		}
		c := s.client(WithKeyOnSpans(func(string) string { return "a\xff" }))
		s.unlock(s.lock(s.traced(), c, "key"))
		s.wantSpans(`hold lock asynclock.end=unlocked,asynclock.key=["a` + "\ufffd" + `"],asynclock.mode=exclusive,asynclock.op=lock,asynclock.store=memory,asynclock.token=1,asynclock.way=at_once`)
	})
}

// A stop that is called twice stops one job only.
func TestStopTwice(t *testing.T) {
	t.Parallel()
	meters := WithMeterProvider(noop.NewMeterProvider())
	observe := func() (func() error, error) { return ObserveJob("stopped twice", new(once.Stats), meters) }
	stop, err := observe()
	if err != nil {
		t.Fatal(err)
	}
	err = stop()
	again, err2 := observe()
	if err := errors.Join(err, err2, stop()); err != nil {
		t.Fatal(err)
	}
	if _, err := observe(); !errors.Is(err, asynclock.ErrInvalidOption) {
		t.Errorf("a third beside the second: got %v, want ErrInvalidOption", err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}

// odd is a provider that can't be compared. It may give no meters.
type odd struct {
	metric.MeterProvider
	more []int
}

func (o odd) Meter(name string, options ...metric.MeterOption) metric.Meter {
	if o.more == nil {
		return nil
	}
	return o.MeterProvider.Meter(name, options...)
}

func TestOddProviders(t *testing.T) {
	onSite(t, func(s *site) {
		if _, err := asynclock.New(s.store, Observe(WithMeterProvider(odd{}))); !errors.Is(err, asynclock.ErrInvalidOption) {
			t.Errorf("no meter: got %v, want ErrInvalidOption", err)
		}
		reader := sdkmetric.NewManualReader()
		s.reader = reader
		p := odd{sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), []int{1}}
		c := s.client(WithMeterProvider(p))
		s.unlock(s.lock(s.Context(), c, "key"))
		s.wantSeries("asynclock.lease.", map[string]float64{"asynclock.lease.ended asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.store=memory": 1})
		closeNow(c)
		s.wantSeries("asynclock.lease.", nil)
		groupsMu.Lock()
		defer groupsMu.Unlock()
		for key := range groups {
			if key.provider == nil {
				t.Errorf("got the group %v, want none that nobody can join", key)
			}
		}
	})
}
