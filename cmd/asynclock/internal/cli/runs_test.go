// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/once"
)

func TestRunsShowsTheLastRun(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	got := redis.run(t, "runs", "job")
	got.want(t, 0)
	if !strings.Contains(got.stdout, "none is known") {
		t.Errorf("got %q, want that no run is known", got.stdout)
	}
	fields := []string{"key", "start", "began", "ended", "by", "attempt", "missed", "failed", "message", "token"}
	got = redis.run(t, "runs", "--json", "job")
	got.want(t, 0)
	if run := object(t, got.stdout, fields...); run["start"] != "" || run["ended"] != "" || fmt.Sprint(run["attempt"]) != "0" {
		t.Errorf("got %v, want no run", run)
	}

	failure := errors.New("no paper\x1b[31m")
	_, err := once.Do(t.Context(), redis.newClient(t), "job", time.Hour, func(context.Context, once.Run) error { return failure })
	if !errors.Is(err, failure) {
		t.Fatal(err)
	}
	got = redis.run(t, "runs", "--json", "job")
	got.want(t, 0)
	run := object(t, got.stdout, fields...)
	if run["key"] != "job" || run["by"] != "a test" || run["failed"] != true || fmt.Sprint(run["attempt"]) != "1" || run["message"] != failure.Error() || run["ended"] == "" {
		t.Errorf("got %v, want the run that failed", run)
	}
	got = redis.run(t, "runs", "job")
	got.want(t, 0)
	if !strings.Contains(got.stdout, `error     "no paper\x1b[31m"`) || strings.Contains(got.stdout, "\x1b") {
		t.Errorf("got %q, want the error quoted", got.stdout)
	}
	redis.run(t, "runs").want(t, 64, "give one KEY")
}
