// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"strings"
	"testing"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// Five services are under load. Redis is frozen, a holder is paused, a key is forced, and a job dies. Each of these shows as
// what it was: in the counts, the metrics and the trace of the services, by the commands doctor, why, runs and top, and on the page.
func TestStory(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	for _, name := range everyone {
		kit.Eventually(t, name+" is under load", func() bool { return s.report(name).Stats.Exclusive.Ended.Unlocked >= 10 })
	}
	s.freezeRedis()
	s.pauseAHolder()
	s.forceAKey()
	s.killAJob()
	s.rest()
}

// rest ends the load. Then every request has come to something, every lease has ended, and metrics say so, too.
func (s *stage) rest() {
	s.Helper()
	for _, name := range everyone[:4] { // the fifth is dead
		s.do(name, "rest")
		r := s.report(name)
		got := r.Stats.Exclusive
		if got.Waiting != 0 || got.Held != 0 || got.Requested != got.Acquired.Sum()+got.Refused.Sum()+got.GivenUp.Sum() || got.Acquired.Sum() != got.Ended.Sum() {
			s.Errorf("%s: got %+v, want the sums", name, got)
		}
		if asked, acquired := got.Requested, got.Acquired.Sum(); r.Runs.Runs == 0 && (asked != r.Asked || acquired != r.Got) {
			s.Errorf("%s: got %d requests and %d leases, want %d and %d as the service has counted", name, asked, acquired, r.Asked, r.Got)
		}
		for metric, want := range map[string]int64{
			"asynclock.request.decided ": got.Requested, "asynclock.lease.ended ": got.Ended.Sum(),
			"asynclock.wait.duration ": got.Requested, "asynclock.hold.duration ": got.Ended.Sum(),
			"asynclock.request.waiting ": 0, "asynclock.lease.held ": 0,
		} {
			if sum := r.sum(metric); sum != float64(want) {
				s.Errorf("%s: %s: got %v, want %d", name, metric, sum, want)
			}
		}
	}
}

// sum is the sum of all series of a metric.
func (r *reported) sum(metric string) (sum float64) {
	for name, value := range r.Series {
		if strings.HasPrefix(name, metric) {
			sum += value
		}
	}
	return sum
}
