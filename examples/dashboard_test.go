// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/asynclockotel"
	"github.com/asynclock/asynclock-go/elect"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/once"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A page is what Prometheus gets: the metrics, and of each its labels and the values of these.
type page map[string]map[string][]string

// gather has a client make something of each metric, and gathers them.
func gather(t *testing.T) page {
	t.Helper()
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	meters := asynclockotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)))
	locks, err := asynclock.New(memstore.New(), asynclock.WithClass("order"), asynclockotel.Observe(meters))
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close(t.Context())
	err = locks.WithLock(t.Context(), "key", func(context.Context, *asynclock.Lease) error {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		_, canceled := locks.Lock(ctx, "key")
		_, timeout := locks.Lock(t.Context(), "key", asynclock.WithWait(time.Millisecond))
		return errors.Join(canceled, timeout)
	})
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	done := errors.New("done")
	if err := elect.Run(t.Context(), locks, "shop", func(context.Context, *elect.Term) error { return done }); !errors.Is(err, done) {
		t.Fatal(err)
	}
	stopJob, err := asynclockotel.ObserveJob("report", new(once.Stats), meters)
	stopElection, err2 := asynclockotel.ObserveElection("shop", new(elect.Stats), meters)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err := errors.Join(err, stopJob(), stopElection()); err != nil {
		t.Fatal(err)
	}
	found := make(page)
	for _, f := range families {
		names := []string{f.GetName()}
		if f.GetMetric()[0].GetHistogram() != nil {
			names = []string{f.GetName() + "_bucket", f.GetName() + "_count", f.GetName() + "_sum"}
		}
		labels := map[string][]string{"le": nil, "instance": nil} // Prometheus' own
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = append(labels[l.GetName()], l.GetValue())
			}
		}
		for _, name := range names {
			found[name] = labels
		}
	}
	return found
}

var (
	selector = regexp.MustCompile(`\b(asynclock_\w+)(\{[^}]*\})?(?:\[|\)|$|\s)`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\)`)
)

// check checks that an expression is of metrics that there are, with labels and values that they have.
func (p page) check(t *testing.T, where, expression string) {
	t.Helper()
	var labels map[string][]string
	plain := grouping.ReplaceAllString(expression, "") // its names look like metrics
	for _, s := range selector.FindAllStringSubmatch(plain, -1) {
		var is bool
		if labels, is = p[s[1]]; !is {
			t.Errorf("%s: there is no metric %s", where, s[1])
			continue
		}
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			values, is := labels[m[1]]
			if !is {
				t.Errorf("%s: %s has no label %s", where, s[1], m[1])
			}
			for value := range strings.SplitSeq(m[2], "|") {
				if !strings.HasPrefix(value, "$") && !slices.Contains(values, value) {
					t.Errorf("%s: no %s of %s is %q, only %q", where, m[1], s[1], value, values)
				}
			}
		}
	}
	if labels == nil {
		t.Errorf("%s: %q has no metric of ours", where, expression)
		return
	}
	for _, g := range grouping.FindAllStringSubmatch(expression, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			if _, is := labels[strings.TrimSpace(label)]; !is {
				t.Errorf("%s: nothing has the label %s", where, label)
			}
		}
	}
}

// The dashboard and the alerts are about metrics that there are. Prometheus understands all expressions.
func TestTheDashboardIsOfTheMetrics(t *testing.T) {
	t.Parallel()
	metrics := gather(t)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Query string }
		}
	}
	if err := json.Unmarshal([]byte(kit.ReadFile(t, "docs/grafana/asynclock.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	rules := "groups:\n- name: panels\n  rules:\n"
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			metrics.check(t, panel.Title, target.Expr)
			asked := strings.NewReplacer("$__rate_interval", "5m", "$store", ".*", "$class", ".*").Replace(target.Expr)
			rule, err := json.Marshal(map[string]string{"record": "panel", "expr": asked})
			if err != nil {
				t.Fatal(err)
			}
			rules += "  - " + string(rule) + "\n"
		}
	}
	for _, v := range dashboard.Templating.List {
		if metric, ok := strings.CutPrefix(v.Query, "label_values("); ok {
			name, label, _ := strings.Cut(strings.TrimSuffix(metric, ")"), ", ")
			metrics.check(t, v.Name, "sum by ("+label+") ("+name+")")
		}
	}
	for _, expression := range regexp.MustCompile(`(?s)expr: (?:>-\n)?(.*?)\n +(?:for|labels): `).FindAllStringSubmatch(kit.ReadFile(t, "docs/grafana/alerts.yaml"), -1) {
		metrics.check(t, "alerts.yaml", expression[1])
	}
	file := filepath.Join(t.TempDir(), "panels.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", "--lint=none", file)
}

// Each alert says that something is wrong when it is, and nothing when all is well.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", "../docs/grafana/alerts.yaml")
	promtool(t, "test", "rules", "../docs/grafana/alerts_test.yaml")
	tested := kit.ReadFile(t, "docs/grafana/alerts_test.yaml")
	for _, alert := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(kit.ReadFile(t, "docs/grafana/alerts.yaml"), -1) {
		quiet := regexp.MustCompile(`\{alertname: ` + alert[1] + `, eval_time: \w+, exp_alerts: \[\]\}`).MatchString(tested)
		if fires := strings.Contains(tested, "- alertname: "+alert[1]+"\n"); !quiet || !fires {
			t.Errorf("%s: a test in which it is quiet: %v, in which it fires: %v; want both", alert[1], quiet, fires)
		}
	}
}

// promtool runs the tool that comes with Prometheus.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		kit.Skip(t, "promtool is not here, which Debian has in the package prometheus")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if said, err := exec.CommandContext(ctx, tool, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, said)
	}
}
