// SPDX-License-Identifier: Apache-2.0

package history

import "fmt"

// A Kind is what a record tells.
type Kind string

// The kinds of records.
const (
	// Run: what the history is one of. Comes once.
	Run Kind = "run"
	// Held: a request was answered with a lease.
	Held Kind = "held"
	// Ended: such a lease is over. A process that was killed tells no end.
	Ended Kind = "ended"
	// Failed: a request was answered with an error.
	Failed Kind = "failed"
	// Write: a resource accepted a write. Told by the resource, not the writer.
	Write Kind = "write"
	// Fault: something was broken from Begin to End.
	Fault Kind = "fault"
	// Bye: a process was asked to stop, and has.
	Bye Kind = "bye"
	// Left: something was still there when all had stopped.
	Left Kind = "left"
	// Seen: an observer of an election learned who leads.
	Seen Kind = "seen"
	// Began: the function of a run in an interval was called.
	Began Kind = "began"
	// Round: a call that may run a job was answered.
	Round Kind = "round"
	// Queued: the store told an owner that it is in the queue. Op names the owner, of this and the next three.
	Queued Kind = "queued"
	// Admitted: the store granted an owner its key.
	Admitted Kind = "admitted"
	// Heard: the client of an owner knows that somebody waits for the key.
	Heard Kind = "heard"
	// Gone: an owner is about to be released.
	Gone Kind = "gone"
)

// A Mode says how much of its key a lease has.
type Mode string

// The modes of leases.
const (
	Exclusive Mode = "" // all of it
	Shared    Mode = "r"
	Permits   Mode = "p"
)

// A Record is one line of a history. Which fields it has depends on its kind.
type Record struct {
	Kind Kind  `json:"k"`
	Wall int64 `json:"wall,omitempty"` // when it was written, in ns since 1970, for people

	// Held, Failed, Ended and Write are about one request each. A request for several keys has
	// such records for each of them, with names of their own, and Whole names the request.
	Op  string `json:"op,omitempty"` // names the request; unique in a run
	Key string `json:"key,omitempty"`
	How string `json:"how,omitempty"` // Held, Failed, Seen, Round: the function of the library

	Whole string `json:"whole,omitempty"` // Held, Failed: the request for several keys of which this is one

	// Held and Failed: the request was made at Begin and answered at End.
	// Fault: it lasted from Begin to End. Ended: Unlock was called at Begin, or
	// the end was seen then, and Unlock returned at End. Seen: the look was asked for at
	// Begin and answered at End; what a channel sent has one time. Began: the call was made
	// at Begin, and the function called at End. Queued, Admitted: the owner's first request was
	// sent at Begin, and the answer came at End. Round: the call lasted from Begin to End.
	Begin Time `json:"b,omitempty"`
	End   Time `json:"e,omitempty"`

	Token int64 `json:"token,omitempty"` // Held, Write, Began; Seen, Round: 0 is none
	TTL   Time  `json:"ttl,omitempty"`   // Held

	// Held: what the lease has of its key. Of permits: how many, of how many.
	Mode   Mode `json:"mode,omitempty"`
	Weight int  `json:"weight,omitempty"`
	Limit  int  `json:"limit,omitempty"`

	// Valid, of Ended, is the last moment at which the lease is known to have
	// been trusted: one right before Lease.Valid was asked and said yes.
	Valid    Time `json:"valid,omitempty"`
	Unlocked bool `json:"unlocked,omitempty"` // Ended: Unlock was answered without an error
	Refused  int  `json:"refused,omitempty"`  // Ended: how many of its writes were refused as stale
	// Lapsed, of Ended, is a moment at which this part of a lease over several keys was over:
	// one right after its own Valid was asked and said no. 0: it was never said.
	Lapsed Time `json:"lapsed,omitempty"`

	Error string `json:"err,omitempty"` // Failed, Ended, Round; Left: what

	Value string `json:"value,omitempty"` // Seen: what the leader has proclaimed, which names its request

	// Began: the interval's beginning by the store's clock, in ns since 1970, its length, and
	// the attempt. Round: those of the last run that the call knows, which has ended if Over.
	Slot    int64 `json:"slot,omitempty"`
	Every   Time  `json:"every,omitempty"`
	Attempt int   `json:"attempt,omitempty"`
	Over    bool  `json:"over,omitempty"`
	Ran     bool  `json:"ran,omitempty"`     // Round: this call has run the job
	Running bool  `json:"running,omitempty"` // Round: another has the key

	// Write: the resource, the value that the writer had read before and the one
	// that it wrote. Values of a resource count its writes.
	Resource string `json:"res,omitempty"`
	Read     int64  `json:"read,omitempty"`
	Wrote    int64  `json:"wrote,omitempty"`

	// Fault: its name, whom it hit, whether the store may have lost data that it
	// had acknowledged (of Key only, if there is one). Step is set if what was lost
	// is only the last of each TTL, so much of it: the store's clock was set forward. Forgets
	// is set if the store may have lost what nobody holds, as notes. Shift is by how much the
	// store's clock was set forward, or back if it is negative. Moves is set if the store may
	// have believed that messages do not reach a client.
	Fault   string `json:"fault,omitempty"`
	Whom    string `json:"whom,omitempty"`
	Lossy   bool   `json:"lossy,omitempty"`
	Step    Time   `json:"step,omitempty"`
	Forgets bool   `json:"forgets,omitempty"`
	Moves   bool   `json:"moves,omitempty"`
	Shift   Time   `json:"shift,omitempty"`

	// Run: what it can be made again with. It went on for End. Origin is when the clock of
	// these times stood at 0, in ns since 1970.
	Origin int64  `json:"origin,omitempty"`
	Seed   uint64 `json:"seed,omitempty"`
	Site   string `json:"site,omitempty"`
	Crew   string `json:"crew,omitempty"`  // who took part, as whoever made the run encodes it
	Build  string `json:"build,omitempty"` // the commit of what was run, if known

	Asked int `json:"asked,omitempty"` // Bye: how many requests the process made
	Told  int `json:"told,omitempty"`  // Bye: and how many were answered
}

// Check reports what makes no sense about a record by itself.
func (r *Record) Check() error {
	bad := func(what string) error { return fmt.Errorf("%s record of %q: %s", r.Kind, r.Op+r.Fault, what) }
	if r.Begin < 0 || r.End < 0 || r.Valid < 0 || r.End < r.Begin {
		return bad("its times make no sense")
	}
	switch r.Kind {
	case Run:
		if r.Site == "" || r.End == 0 {
			return bad("a site and a duration are needed")
		}
	case Held:
		if r.Op == "" || r.Key == "" || r.Token <= 0 || r.TTL <= 0 || r.End == 0 {
			return bad("a request, its key, its lease's token and TTL and times are needed")
		}
		if permits := r.Mode == Permits; permits != (r.Weight > 0) || r.Weight > r.Limit {
			return bad("permits have a weight up to their limit, and nothing else has")
		}
	case Ended:
		if r.Op == "" || r.End == 0 || r.Valid > r.Begin || r.Lapsed < 0 {
			return bad("a request and its times are needed, and trust ends no later than the lease")
		}
	case Failed:
		if r.Op == "" || r.Key == "" || r.Error == "" || r.End == 0 {
			return bad("a request, its key, an error and times are needed")
		}
	case Write:
		if r.Op == "" || r.Key == "" || r.Resource == "" || r.Token <= 0 || r.Wrote <= 0 {
			return bad("a request, a key, a resource, a token and a value are needed")
		}
	case Fault:
		if r.Fault == "" || r.End == 0 {
			return bad("a name and times are needed")
		}
		if r.Step < 0 || r.Step > 0 && !r.Lossy {
			return bad("a clock that is set forward ends leases early")
		}
	case Bye:
		if r.Whom == "" || r.Told > r.Asked {
			return bad("a process is needed, and answers are to requests")
		}
	case Left:
		if r.Error == "" {
			return bad("nothing was left")
		}
	default:
		return r.checkNews(bad)
	}
	return nil
}

// checkNews is Check of what is told of elections, jobs and owners.
func (r *Record) checkNews(bad func(what string) error) error {
	switch r.Kind {
	case Seen:
		if r.Whom == "" || r.Key == "" || r.How == "" || r.Token < 0 || r.End == 0 {
			return bad("an observer, a key, a function, a term's number and times are needed")
		}
	case Began:
		if r.Op == "" || r.Key == "" || r.Token <= 0 || r.Attempt < 1 || r.Every <= 0 || r.End == 0 {
			return bad("a request, its key, token, attempt, interval and times are needed")
		}
	case Queued, Admitted, Heard, Gone:
		if r.Op == "" || r.Key == "" || r.TTL <= 0 || r.End == 0 || r.Token < 0 {
			return bad("an owner, its key, its TTL and times are needed")
		}
	case Round:
		if r.Op == "" || r.Key == "" || r.Every <= 0 || r.End == 0 || r.Ran && r.Running {
			return bad("a request, its key, its interval and times are needed, and who runs does not wait")
		}
	default:
		return fmt.Errorf("unknown kind %q", r.Kind)
	}
	return nil
}
