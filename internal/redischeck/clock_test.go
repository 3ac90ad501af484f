// SPDX-License-Identifier: Apache-2.0

package redischeck

import (
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

func TestPace(t *testing.T) {
	const ms = time.Millisecond
	began := time.Now()
	for name, tt := range map[string]struct {
		trip    time.Duration // how long a look takes; the server is asked at its beginning
		passed  time.Duration // on the server
		offset  time.Duration
		verdict store.Verdict
		fact    string
	}{
		"the same":                    {1 * ms, 2000 * ms, 0, store.VerdictOK, "runs as that of this host"},
		"half a percent faster":       {1 * ms, 2010 * ms, 0, store.VerdictOK, ""},
		"two percent faster":          {1 * ms, 2040 * ms, 0, store.VerdictWarn, "went on by 2.04s: it runs at another rate, or was set"},
		"two percent slower":          {1 * ms, 1960 * ms, 0, store.VerdictWarn, "went on by 1.96s"},
		"which may be the distance":   {50 * ms, 2060 * ms, 0, store.VerdictOK, ""},
		"which can't be that":         {50 * ms, 2080 * ms, 0, store.VerdictWarn, "another rate"},
		"set back":                    {1 * ms, -time.Hour, 0, store.VerdictWarn, "was set"},
		"stands":                      {1 * ms, 0, 0, store.VerdictWarn, "went on by 0s"},
		"ahead":                       {1 * ms, 2000 * ms, time.Minute, store.VerdictNote, "differ by 59.999s"},
		"behind":                      {1 * ms, 2000 * ms, -time.Minute, store.VerdictNote, "differ by 1m0s"},
		"ahead by less than a second": {1 * ms, 2000 * ms, 900 * ms, store.VerdictOK, "by less than a second"},
	} {
		a := sample{server: began.Add(tt.offset), before: began, after: began.Add(tt.trip)}
		b := sample{server: a.server.Add(tt.passed), before: began.Add(2000 * ms), after: began.Add(2000*ms + tt.trip)}
		a.server, b.server = a.server.Round(0), b.server.Round(0)
		if got := pace(a, b); got.Check != "clock" || got.Verdict != tt.verdict || !strings.Contains(got.Fact, tt.fact) || (got.Fix == "") != (tt.verdict == store.VerdictOK) {
			t.Errorf("%s: got %+v, want %v with %q", name, got, tt.verdict, tt.fact)
		}
	}
}
