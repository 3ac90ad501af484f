// SPDX-License-Identifier: Apache-2.0

package asynclockotel

// scope names what makes the metrics and spans.
const scope = "github.com/asynclock/asynclock-go/asynclockotel"

// Names of attributes. Each has few values, except those of spans.
const (
	attrStore   = "asynclock.store"   // redis, spring-redis, postgres, mysql, zookeeper, memory and so on
	attrMode    = "asynclock.mode"    // exclusive, readers, permits, several
	attrOutcome = "asynclock.outcome" // acquired, or why not
	attrWay     = "asynclock.way"     // of acquired leases
	attrEnd     = "asynclock.end"     // of leases
	attrState   = "asynclock.state"   // of keys
	attrClass   = "asynclock.class"   // of keys: asynclock.WithClass
	attrOp      = "asynclock.store.op"
	attrError   = "error.type" // by the conventions of OpenTelemetry
	attrJob     = "asynclock.job"
	attrLeader  = "asynclock.election"

	// Of spans only.
	attrRequest   = "asynclock.op"
	attrKey       = "asynclock.key"
	attrToken     = "asynclock.token"
	attrBlockedBy = "asynclock.blocked_by"
)

// A kind is that of an instrument.
type kind string

const (
	counter   kind = "counter"
	upDown    kind = "up-down counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// An instrument is a metric.
type instrument struct {
	name        string
	kind        kind
	unit        string // in UCUM; a word in braces is a count of these
	description string
	attributes  []string // besides the store
}

// Metrics of clients that are read from asynclock.Stats.
var (
	requestsDecided = instrument{"asynclock.request.decided", counter, "{request}", "Requests by what they have come to", []string{attrMode, attrOutcome, attrWay}}
	requestsWaiting = instrument{"asynclock.request.waiting", upDown, "{request}", "Callers that wait now, each pending future included", []string{attrMode}}
	leasesHeld      = instrument{"asynclock.lease.held", upDown, "{lease}", "Leases that last now", []string{attrMode}}
	leasesEnded     = instrument{"asynclock.lease.ended", counter, "{lease}", "Leases by the reason of their end", []string{attrMode, attrEnd}}
	renewals        = instrument{"asynclock.renewal.answered", counter, "{renewal}", "Answers to renewals", []string{attrOutcome}}
	renewalCalls    = instrument{"asynclock.renewal.calls", counter, "{call}", "Calls to the store that renew, each of many leases", nil}
	releasesBad     = instrument{"asynclock.release.failed", counter, "{release}", "Releases that did not go well", []string{attrOutcome}}
	keysBy          = instrument{"asynclock.key.count", upDown, "{key}", "Keys by what the client does with them now; one may count several times", []string{attrState}}
	leastTrust      = instrument{"asynclock.trust.least", gauge, "1", "How much of the time to the trust deadline was left at a renewal, at the least, lately; 0.65 is well, 0 is a loss", nil}
	clientsFailing  = instrument{"asynclock.client.failing", upDown, "{client}", "Clients to which the store, or a part of it, answers with failures only", nil}
	clientsDeaf     = instrument{"asynclock.client.deaf", upDown, "{client}", "Clients that notifications of the store, or of a part of it, don't reach", nil}
	hooksLeftOut    = instrument{"asynclock.hook.left_out", counter, "{call}", "Calls of hooks that were left out because hooks are slow", nil}
)

// Metrics that are recorded by hooks.
var (
	waitDuration = instrument{"asynclock.wait.duration", histogram, "s", "How long requests waited until they were decided", []string{attrClass, attrMode, attrOutcome, attrWay}}
	holdDuration = instrument{"asynclock.hold.duration", histogram, "s", "How long leases lasted", []string{attrClass, attrMode, attrEnd}}
	callDuration = instrument{"asynclock.store.call.duration", histogram, "s", "How long calls to the store took", []string{attrOp, attrError}}
)

// Metrics of jobs and elections.
var (
	jobRuns    = instrument{"asynclock.job.runs", counter, "{run}", "Runs of a job by how they ended", []string{attrJob, attrOutcome}}
	jobRunning = instrument{"asynclock.job.running", upDown, "{run}", "Runs that go on now", []string{attrJob}}
	jobCalls   = instrument{"asynclock.job.idle_calls", counter, "{call}", "Calls that ran nothing, by why", []string{attrJob, attrOutcome}}
	jobMissed  = instrument{"asynclock.job.missed", counter, "{interval}", "Intervals without a run", []string{attrJob}}
	jobAgain   = instrument{"asynclock.job.repeated", counter, "{run}", "Runs after one in the same interval whose process died or lost its lease", []string{attrJob}}
	jobTime    = instrument{"asynclock.job.time", counter, "s", "How long the job's function has run in all", []string{attrJob}}

	terms          = instrument{"asynclock.election.terms", counter, "{term}", "Terms of this process by how they ended", []string{attrLeader, attrEnd}}
	leading        = instrument{"asynclock.election.leading", upDown, "{term}", "Terms of this process that last now", []string{attrLeader}}
	ledTime        = instrument{"asynclock.election.led", counter, "s", "How long this process has led", []string{attrLeader}}
	leaderlessTime = instrument{"asynclock.election.leaderless", counter, "s", "For how long an observer saw no leader", []string{attrLeader}}
	unknownTime    = instrument{"asynclock.election.unknown", counter, "s", "For how long an observer did not know who leads", []string{attrLeader}}
)

// instruments are all of them, in the order of the table in docs.
var instruments = []instrument{
	requestsDecided, requestsWaiting, waitDuration, leasesHeld, leasesEnded, holdDuration,
	leastTrust, renewals, renewalCalls, releasesBad, keysBy,
	callDuration, clientsFailing, clientsDeaf, hooksLeftOut,
	jobRuns, jobRunning, jobCalls, jobMissed, jobAgain, jobTime,
	terms, leading, ledTime, leaderlessTime, unknownTime,
}

// buckets are the bounds of histograms, in seconds: from a free key to a minute's wait.
var buckets = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
}
