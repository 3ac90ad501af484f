// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

// serviceVariable names the service that this test binary is to be. serverVariable says where its Redis is.
const (
	serviceVariable = "ASYNCLOCKOTEL_SERVICE"
	serverVariable  = "ASYNCLOCK_REDIS_URL"
)

const (
	// longTTL is that of the load, which no fault of the story lasts as long as.
	longTTL = 30 * time.Second
	// jobTTL is that of a job's lease: the next run begins so long after a death.
	jobTTL = 4 * time.Second
	// slowWait is how long a wait has to be for a span: the load makes none.
	slowWait = 700 * time.Millisecond
)

// A service is one of the story's processes. A test tells it by lines what to do, and it answers each with a line.
type service struct {
	locks  *asynclock.Client
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	tracer trace.Tracer
	runs   once.Stats
	finish chan struct{} // lets the function of a job return

	asked, got, unreachable atomic.Int64 // requests, those that became leases, and those that the store did not answer
	rests                   atomic.Bool  // the load is over
	load                    sync.WaitGroup

	mu   sync.Mutex
	held map[string]holding
}

// A holding is what became of a line "hold".
type holding struct {
	Token int64         // 0: the request waits, or has failed
	Ended string        // why the request has failed, or the lease has ended; empty: it lasts
	After time.Duration // how long that took
	lease *asynclock.Lease
}

// A report is what a service has counted, measured and traced.
type report struct {
	Stats   asynclock.Stats
	Runs    once.Counts
	Series  map[string]float64
	Longest map[string]float64 // of the histograms among the series
	Spans   []string           // that have ended
	Held    map[string]holding

	Asked, Got, Unreachable int64
}

// serve is the service with the name, until its input ends.
func serve(name string, in io.Reader, out io.Writer) error {
	st, err := redisstore.OpenURL(os.Getenv(serverVariable), redisstore.WithoutFailoverGrace()) // the server is new
	if err != nil {
		return err
	}
	defer st.Close()
	s := &service{
		reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder(),
		finish: make(chan struct{}), held: make(map[string]holding),
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans))
	s.tracer = traces.Tracer("service")
	s.locks, err = asynclock.New(st, asynclock.WithDescription(name), asynclock.WithTTL(longTTL),
		asynclock.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))),
		Observe(WithMeterProvider(meters), WithTracerProvider(traces), WithClassOf(BeforeColon), WithLeastWait(slowWait)))
	if err != nil {
		return err
	}
	defer closeNow(s.locks)
	stop, err := ObserveJob("report", &s.runs, WithMeterProvider(meters))
	if err != nil {
		return err
	}
	s.work(name)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := s.answer(strings.Fields(lines.Text()), json.NewEncoder(out)); err != nil {
			return err
		}
	}
	return stop()
}

// work begins the load: a key of the service's own, one that it shares with others, and one that it tries.
func (s *service) work(name string) {
	keys := []string{"own:" + name}
	if name != "jobs" { // which will die, and would leave the others to wait
		keys = append(keys, "stock:1", "stock:2")
	}
	for _, key := range keys {
		s.load.Go(func() { // ends when the service rests
			for !s.rests.Load() {
				s.workOnce(key)
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
}

func (s *service) workOnce(key string) {
	lock := s.locks.Lock
	if key == "stock:2" {
		lock = s.locks.TryLock
	}
	lease, err := lock(context.Background(), key)
	if s.count(err); err != nil {
		return
	}
	time.Sleep(5 * time.Millisecond)
	_ = lease.Unlock(context.Background()) // the counts say how it went
}

// count counts a request by its error.
func (s *service) count(err error) {
	s.asked.Add(1)
	switch {
	case err == nil:
		s.got.Add(1)
	case errors.Is(err, asynclock.ErrUnreachable):
		s.unreachable.Add(1)
	}
}

// answer does what a line says, and answers when it has begun, except that "rest" and "release" wait for the end.
func (s *service) answer(words []string, out *json.Encoder) error {
	switch {
	case len(words) == 3 && words[0] == "hold":
		ttl, err := time.ParseDuration(words[2])
		if err != nil {
			return err
		}
		go s.hold(words[1], ttl) // ends with the lease or the process
	case len(words) == 2 && words[0] == "release":
		s.mu.Lock()
		lease := s.held[words[1]].lease
		s.mu.Unlock()
		if lease == nil {
			return fmt.Errorf("%s is not held", words[1])
		}
		if err := lease.Unlock(context.Background()); err != nil {
			return err
		}
	case len(words) == 2 && words[0] == "run":
		go s.run(words[1]) // ends after the run, or with the process
	case len(words) == 1 && words[0] == "finish":
		close(s.finish)
	case len(words) == 1 && words[0] == "rest":
		s.rests.Store(true)
		s.load.Wait()
	case len(words) == 1 && words[0] == "report":
		return s.report(out)
	default:
		return fmt.Errorf("no such line: %q", words)
	}
	return out.Encode("ok")
}

// hold locks a key in a request that is traced, until it is released or lost.
func (s *service) hold(key string, ttl time.Duration) {
	ctx, span := s.tracer.Start(context.Background(), "request")
	defer span.End()
	begin := time.Now()
	lease, err := s.locks.Lock(ctx, key, asynclock.WithTTL(ttl))
	if s.count(err); err != nil {
		s.note(key, holding{Ended: err.Error(), After: time.Since(begin)})
		return
	}
	s.note(key, holding{Token: lease.Token(), lease: lease})
	<-lease.Done()
	s.note(key, holding{Token: lease.Token(), Ended: lease.Err().Error(), After: time.Since(begin)})
}

func (s *service) note(key string, h holding) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[key] = h
}

// run runs a job, once it is due and nobody else runs it.
func (s *service) run(key string) {
	for {
		ctx, span := s.tracer.Start(context.Background(), "job")
		outcome, err := once.Do(ctx, s.locks, key, once.MaxInterval, func(ctx context.Context, _ once.Run) error {
			select {
			case <-s.finish:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, once.WithStats(&s.runs), once.WithLockOptions(asynclock.WithTTL(jobTTL)))
		span.End()
		if outcome.Ran || err != nil {
			s.note(key, holding{Ended: fmt.Sprint(outcome.Last.Attempt, err)})
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// report answers with what there is to be seen.
func (s *service) report(out *json.Encoder) error {
	found, err := collect(context.Background(), s.reader)
	r := report{
		Stats: s.locks.Stats(), Runs: s.runs.Counts(), Asked: s.asked.Load(), Got: s.got.Load(), Unreachable: s.unreachable.Load(),
		Series: make(map[string]float64), Longest: make(map[string]float64),
	}
	for name, f := range found {
		r.Series[name] = f.value
		if f.longest > 0 {
			r.Longest[name] = f.longest
		}
	}
	for _, span := range s.spans.Ended() {
		if name := span.Name(); name != "request" && name != "job" {
			r.Spans = append(r.Spans, shown(span))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Held = s.held
	return errors.Join(err, out.Encode(r))
}
