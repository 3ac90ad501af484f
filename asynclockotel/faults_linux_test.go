// SPDX-License-Identifier: Apache-2.0

package asynclockotel

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/doctor"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/once"
)

const (
	jobKey = "job:report"

	// frozen is for how long Redis is: a little longer than package doctor waits for an answer.
	frozen = 3500 * time.Millisecond
)

// A silence is what shows while Redis says nothing.
type silence struct {
	top, page, failing bool
	found              []finding // by package doctor, to which the store is open
	opened             []finding // by the command doctor, which has to open it
}

// freezeRedis stops Redis for some seconds. Nobody loses a lease, renewals come late, and requests wait or fail.
func (s *stage) freezeRedis() {
	s.Helper()
	kit.Eventually(s, "top and the page are up to date", func() bool {
		return s.onTop("stock:1").isThere && s.onPage("stock:1").isThere && !s.isOld()
	})
	for _, name := range everyone {
		s.do(name, "hold", "ledger:"+name, "7s") // is first renewed, and more than once, while Redis is frozen
	}
	for _, name := range everyone {
		s.holds(name, "ledger:"+name)
	}
	seen := s.watchSilence()
	if !seen.top || !seen.page || !seen.failing {
		s.Errorf("while Redis was frozen: got %+v, want all seen", seen)
	}
	s.wantFinding(seen.found, "answers", "fail", "can't be inspected")
	if o := seen.opened; len(o) == 0 || o[0].Check != "server" || o[0].Verdict == "ok" || !strings.Contains(o[0].Fact, "open") {
		s.Errorf("doctor: got %+v, want first that the store took long to open, or could not be opened", o)
	}
	for _, name := range everyone {
		s.wantLateRenewals(name)
	}
	begin := time.Now()
	kit.Eventually(s, "top and the page are up to date again", func() bool {
		return s.onTop("ledger:mail").left > 4 && s.onPage("ledger:mail").left > 4 && !s.isOld()
	})
	if took := time.Since(begin); took > 20*time.Second { // twelve times as long as the list took would be 40 s
		s.Errorf("top and the page were up to date again after %v, want that one slow list does not delay the next", took)
	}
	for _, name := range everyone {
		s.do(name, "release", "ledger:"+name)
	}
	s.wantRequestsOfTheFreeze("mail")
}

// isOld reports whether top or the page says that what it shows is old.
func (s *stage) isOld() bool {
	return strings.Contains(s.top.lines(s)[0], "s ago)") || strings.Contains(s.get("./"), "s ago)")
}

// watchSilence stops Redis, and returns what was seen before it runs on.
func (s *stage) watchSilence() (seen silence) {
	s.Helper()
	thawed := make(chan struct{})
	if err := s.redis.Pause(); err != nil {
		s.Fatal(err)
	}
	thaw := time.AfterFunc(frozen, func() {
		_ = s.redis.Resume() // it is ours, so it can't be refused
		close(thawed)
	})
	defer thaw.Stop()
	var lookers sync.WaitGroup
	lookers.Go(func() {
		found, _ := doctor.Check(s.Context(), s.store) // only a nil store is an error
		for _, f := range found {
			seen.found = append(seen.found, finding{f.Check, f.Verdict.String(), f.Fact, f.Fix})
		}
	})
	lookers.Go(func() { seen.opened = s.find("doctor", "--json") })
	lookers.Go(func() { seen.top = look(thawed, func() bool { return strings.Contains(s.top.lines(s)[0], "s ago)") }) })
	var pages [2]bool // one of two who look may be the one who waits for Redis, so that the other need not
	for i := range pages {
		lookers.Go(func() { pages[i] = look(thawed, func() bool { return strings.Contains(s.get("./"), "s ago)") }) })
	}
	s.do("mail", "hold", "audit:1", "3s")  // waits for a second at most while the store fails
	s.do("mail", "hold", "audit:2", "30s") // waits for ten
	seen.failing = look(thawed, func() bool {
		r := s.report("mail")
		return r.Stats.Failing && r.Series["asynclock.client.failing asynclock.store=redis"] == 1
	})
	<-thawed
	lookers.Wait()
	seen.page = pages[0] || pages[1]
	return seen
}

// wantLateRenewals checks that a service has noticed the freeze, and that it has lost nothing.
func (s *stage) wantLateRenewals(name string) {
	s.Helper()
	var r reported
	kit.Eventually(s, name+" has renewed", func() bool {
		r = s.report(name)
		return r.Stats.Renewals.Done > 0 && !r.Stats.Failing
	})
	if got := r.Stats.LeastTrust; got <= 0 || got > 0.55 || r.Series["asynclock.trust.least asynclock.store=redis"] > 0.55 {
		s.Errorf("%s: got the least trust %v, want less than usual, and no loss", name, got)
	}
	if lost := r.Stats.Exclusive.Ended.Lost(); lost != 0 || r.Stats.Exclusive.Held == 0 {
		s.Errorf("%s: got %d leases lost, %d held, want none lost", name, lost, r.Stats.Exclusive.Held)
	}
	failed := r.Stats.Renewals.Failed
	if failed == 0 {
		s.Errorf("%s: got no renewal that had no answer in time, want some", name)
	}
	r.wantSeries(map[string]float64{
		"asynclock.renewal.answered asynclock.outcome=failed,asynclock.store=redis": float64(failed),
		"asynclock.client.failing asynclock.store=redis":                            0,
	})
	if got := r.longest("asynclock.store.call.duration ", "asynclock.store.op=renew"); got < 0.3 {
		s.Errorf("%s: got renewals of %vs at most, want one that has waited for the thaw, or for as long as a connection is given", name, got)
	}
}

// wantRequestsOfTheFreeze checks what became of the requests that a service began while Redis was frozen.
func (s *stage) wantRequestsOfTheFreeze(name string) {
	s.Helper()
	token := s.holds(name, "audit:2")
	s.do(name, "release", "audit:2")
	kit.Eventually(s, "the lease has ended", func() bool { return s.report(name).Held["audit:2"].Ended != "" })
	r := s.report(name)
	if got := r.Held["audit:1"]; !strings.Contains(got.Ended, "unreachable") || got.After > frozen {
		s.Errorf("the request with little patience: got %+v, want that the store is unreachable", got)
	}
	if got := r.Stats.Exclusive.Refused.Unreachable; got != r.Unreachable || got == 0 {
		s.Errorf("got %d requests refused as unreachable, want %d, as the service has counted", got, r.Unreachable)
	}
	r.wantSeries(map[string]float64{
		"asynclock.request.decided asynclock.mode=exclusive,asynclock.outcome=unreachable,asynclock.store=redis":                     float64(r.Unreachable),
		"asynclock.wait.duration asynclock.class=audit,asynclock.mode=exclusive,asynclock.outcome=unreachable,asynclock.store=redis": 1,
	})
	if got := r.longest("asynclock.store.call.duration ", "asynclock.store.op=acquire,error.type=unreachable"); got < 0.5 {
		s.Errorf("%s: got calls of %vs at most that had no answer, want some of them", name, got)
	}
	if got := r.longest("asynclock.wait.duration asynclock.class=audit", "asynclock.outcome=acquired"); got < 2 {
		s.Errorf("the patient request: got %vs at most, want seconds", got)
	}
	r.wantSpan("wait audit asynclock.mode=exclusive,asynclock.op=lock,asynclock.outcome=unreachable,asynclock.store=redis,error.type=unreachable Error(unreachable)")
	r.wantSpan("wait audit asynclock.mode=exclusive,asynclock.op=lock,asynclock.outcome=acquired,asynclock.store=redis,asynclock.way=at_once")
	r.wantSpan(fmt.Sprintf("hold audit asynclock.end=unlocked,asynclock.mode=exclusive,asynclock.op=lock,asynclock.store=redis,asynclock.token=%d,asynclock.way=at_once", token))
}

// pauseAHolder stops the process of a holder until another has its key. It finds out when it runs on.
func (s *stage) pauseAHolder() {
	s.Helper()
	const key, ttl = "order:42", 8 * time.Second
	s.do("orders", "hold", key, ttl.String())
	token := s.holds("orders", key)
	s.do("billing", "hold", key, ttl.String())
	s.waits(key, 1)
	kit.Eventually(s, "top and the page show the holder", func() bool { return s.onTop(key).holder == "orders" && s.onPage(key).holder == "orders" })
	s.do("orders", "rest") // or it may have another lease just then that no renewal has made long yet
	if err := s.services["orders"].Pause(); err != nil {
		s.Fatal(err)
	}
	found := s.why(key)
	s.wantFinding(found, "holder", "note", `"orders"`, fmt.Sprintf("token %d", token))
	s.wantFinding(found, "renewals", "warn", "No renewal within ", "although one was due: the holder stands still")
	s.wantFinding(found, "queue", "note", `1 waits; the first is "billing"`)
	for what, show := range map[string]func(string) row{"top": s.onTop, "the page": s.onPage} {
		kit.Eventually(s, "the TTL runs down on "+what, func() bool { // a holder that renews has more than half of it
			r := show(key)
			return r.holder == "orders" && r.left < ttl.Seconds()/2 || r.holder == "billing"
		})
	}
	next := s.holds("billing", key)
	kit.Eventually(s, "top and the page show the next holder", func() bool { return s.onTop(key).holder == "billing" && s.onPage(key).holder == "billing" })
	if err := s.services["orders"].Resume(); err != nil {
		s.Fatal(err)
	}
	kit.Eventually(s, "the holder learns that it was paused", func() bool { return s.report("orders").Held[key].Ended != "" })
	s.wantLoss("orders", "order", "expired", token)
	s.wantHandover("billing", "order", token, next)
	s.do("billing", "release", key)
}

// wantLoss checks that a service has lost the lease with the token, and no other so.
func (s *stage) wantLoss(name, class, end string, token int64) {
	s.Helper()
	var r reported
	kit.Eventually(s, "the loss is counted and traced", func() bool {
		r = s.report(name)
		return r.Stats.Exclusive.Ended.Lost() > 0 && strings.Contains(fmt.Sprint(r.Spans), fmt.Sprintf("token=%d,", token))
	})
	ended := r.Stats.Exclusive.Ended
	if got := map[string]int64{"expired": ended.Expired, "forced": ended.Forced}[end]; got != 1 || ended.Lost() != 1 {
		s.Errorf("%s: got %+v, want one lease %s", name, ended, end)
	}
	r.wantSeries(map[string]float64{
		"asynclock.lease.ended asynclock.end=" + end + ",asynclock.mode=exclusive,asynclock.store=redis":                                 1,
		"asynclock.hold.duration asynclock.class=" + class + ",asynclock.end=" + end + ",asynclock.mode=exclusive,asynclock.store=redis": 1,
	})
	r.wantSpan(fmt.Sprintf("hold %s asynclock.end=%s,asynclock.mode=exclusive,asynclock.op=lock,asynclock.store=redis,asynclock.token=%d,asynclock.way=at_once "+
		"Error(lease lost: %s) lease lost", class, end, token, end))
}

// wantHandover checks that a service has waited for the lease with one token, and got the other.
func (s *stage) wantHandover(name, class string, before, token int64) {
	s.Helper()
	if token <= before {
		s.Errorf("got token %d after %d, want a larger one", token, before)
	}
	r := s.report(name)
	r.wantSpan(fmt.Sprintf("wait %s asynclock.blocked_by=%d,asynclock.mode=exclusive,asynclock.op=lock,asynclock.outcome=acquired,asynclock.store=redis,asynclock.way=queued", class, before))
	r.wantSeries(map[string]float64{
		"asynclock.wait.duration asynclock.class=" + class + ",asynclock.mode=exclusive,asynclock.outcome=acquired,asynclock.store=redis,asynclock.way=queued": 1,
	})
}

// hidden is a field of a form that the page fills in.
var hidden = regexp.MustCompile(`name="(holder|token)" value="([^"]*)"`)

// forceAKey takes a key from its holder by the page.
func (s *stage) forceAKey() {
	s.Helper()
	const key, address = "parcel:9", "unlock?key=parcel%3A9"
	s.do("shipping", "hold", key, "6s")
	token := s.holds("shipping", key)
	s.do("mail", "hold", key, "6s")
	s.waits(key, 1)
	found := s.why(key)
	s.wantFinding(found, "holder", "note", `"shipping"`, fmt.Sprintf("--force --token %d", token))
	s.wantFinding(found, "renewals", "note", "The holder is alive")
	kit.Eventually(s, "top shows the holder", func() bool { return s.onTop(key).holder == "shipping" })
	time.Sleep(slowWait) // so that the wait has a span
	form := url.Values{"typed": {key}}
	for _, field := range hidden.FindAllStringSubmatch(s.get(address), -1) {
		form.Set(field[1], strings.ReplaceAll(field[2], "&#34;", `"`))
	}
	s.wantText("the page", s.post(address, form), "The key was taken from its holder.")
	s.wantText("the page's log", s.log.String(), "level=WARN", "key="+key, "holder=shipping", fmt.Sprintf("token=%d", token), "taken=true")
	next := s.holds("mail", key)
	kit.Eventually(s, "top and the page show the next holder", func() bool { return s.onTop(key).holder == "mail" && s.onPage(key).holder == "mail" })
	s.wantFinding(s.why(key), "holder", "ok", `"mail"`, fmt.Sprintf("token %d", next))
	s.wantLoss("shipping", "parcel", "forced", token)
	s.wantHandover("mail", "parcel", token, next)
	s.do("mail", "release", key)
}

// killAJob kills the process that runs a job. Another one runs it again.
func (s *stage) killAJob() {
	s.Helper()
	s.do("jobs", "run", jobKey)
	kit.Eventually(s, "the job runs", func() bool { return s.report("jobs").Runs.Running == 1 })
	r := s.report("jobs")
	r.wantSeries(map[string]float64{"asynclock.job.running asynclock.job=report": 1})
	kit.Eventually(s, "top shows who runs it", func() bool { return s.onTop(jobKey).holder == "jobs" })
	_ = s.services["jobs"].Kill()
	s.wantText("the page", s.get("jobs"), "not recorded, and ", "<dd>jobs</dd>")
	s.wantRun("jobs", 1, false)
	kit.Eventually(s, "the TTL runs down", func() bool { return s.onTop(jobKey).left < jobTTL.Seconds()/2 })
	kit.Eventually(s, "the page says that the run has died", func() bool {
		return strings.Contains(s.get("jobs"), "not recorded, and nobody holds the key: it was interrupted, or died")
	})
	s.do("billing", "run", jobKey)
	kit.Eventually(s, "another runs the job", func() bool { return s.report("billing").Runs.Running == 1 })
	kit.Eventually(s, "top and the page show who runs it", func() bool {
		return s.onTop(jobKey).holder == "billing" && s.onPage(jobKey).holder == "billing"
	})
	s.do("billing", "finish")
	kit.Eventually(s, "the job has ended", func() bool { return s.report("billing").Held[jobKey].Ended != "" })
	s.wantRun("billing", 2, true)
	s.wantText("the page", s.get("jobs"), "<dd>billing</dd>", "<dt>Attempt</dt> <dd>2</dd>", "UTC, after ")
	s.wantSecondAttempt("billing")
}

// wantRun checks what is recorded of the last run, and what the command runs says of it.
func (s *stage) wantRun(by string, attempt int, ended bool) {
	s.Helper()
	run, err := once.LastRun(s.Context(), s.locks, jobKey)
	if err != nil || run.By != by || run.Attempt != attempt || run.Ended.IsZero() == ended {
		s.Errorf("the last run: got %+v, %v, want attempt %d by %s, ended %v", run, err, attempt, by, ended)
	}
	end := `"ended":"",`
	if ended {
		end = `"ended":"2`
	}
	s.wantText("runs", string(s.ask("runs", "--json", jobKey)), end, fmt.Sprintf(`"by":%q,"attempt":%d,`, by, attempt))
}

// wantSecondAttempt checks what the service has counted that has run the job after another one's death.
func (s *stage) wantSecondAttempt(name string) {
	s.Helper()
	r := s.report(name)
	if got := r.Runs; got.Runs != 1 || got.Done != 1 || got.Repeated != 1 || got.Missed != 0 {
		s.Errorf("%s: got %+v, want one run, which is done, and a repeated one", name, got)
	}
	r.wantSeries(map[string]float64{
		"asynclock.job.runs asynclock.job=report,asynclock.outcome=done":       1,
		"asynclock.job.idle_calls asynclock.job=report,asynclock.outcome=held": float64(r.Runs.Held),
		"asynclock.job.running asynclock.job=report":                           0,
		"asynclock.job.repeated asynclock.job=report":                          1,
	})
	n := 0
	for _, span := range r.Spans {
		if strings.HasPrefix(span, "hold job asynclock.end=unlocked,") {
			n++
		}
	}
	if n != 1 {
		s.Errorf("%s: got %d spans of runs, want 1 among\n%s", name, n, strings.Join(r.Spans, "\n"))
	}
}
