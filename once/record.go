// SPDX-License-Identifier: Apache-2.0

package once

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// RunInfo describes a run. Its times are by the store's clock.
type RunInfo struct {
	Start   time.Time // of the interval
	Began   time.Time
	Ended   time.Time // zero: it has not ended, or it was interrupted, or its process died
	By      string    // the holder's description of itself
	Attempt int       // from 1, in this interval
	Missed  int       // how many intervals had no run before this one
	Failed  bool      // the job returned an error
	Message string    // the beginning of the error's text
	Token   int64     // of the lease
}

// longestMessage is how much of an error's text is kept, in bytes.
const longestMessage = 256

// A record is a RunInfo as it is in a note, without the token. Times are in microseconds since 1970.
type record struct {
	Version int    `json:"v"`
	Start   int64  `json:"start"`
	Began   int64  `json:"began"`
	Ended   int64  `json:"ended,omitempty"`
	By      string `json:"by"`
	Attempt int    `json:"attempt"`
	Missed  int    `json:"missed,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
	Message string `json:"message,omitempty"`
	After   int64  `json:"after,omitempty"` // this and the next two: see skipped
	Before  int64  `json:"before,omitempty"`
	Latest  int64  `json:"latest,omitempty"`
}

// version is of the record's form. Another one is never misread. A later release has to keep the meaning of
// what a [head] has, or leave its start out.
const version = 1

// A head is what records of all versions have. So processes of an earlier release know in which intervals
// those of a later one have run the job, while both are at work.
type head struct {
	Version int             `json:"v"`
	Start   json.RawMessage `json:"start"`  // microseconds since 1970
	Latest  json.RawMessage `json:"latest"` // likewise, if it is later: the beginning of the latest interval with a run
}

// A found is what the note of a key says about the last run. Zero: there was none.
type found struct {
	info  *RunInfo  // nil: none, or it can't be read
	later bool      // the record is of a later release, and only start is known of it
	start time.Time // of its interval

	skipped skipped
}

// encode returns the note of a run. Its message is cut until it fits.
func (r *RunInfo) encode(s skipped) []byte {
	rec := record{
		Version: version, Start: r.Start.UnixMicro(), Began: r.Began.UnixMicro(), Ended: micro(r.Ended),
		By: r.By, Attempt: r.Attempt, Missed: r.Missed, Failed: r.Failed,
		After: micro(s.after), Before: micro(s.before), Latest: micro(s.latest),
	}
	for most := longestMessage; ; most /= 2 {
		rec.Message = strings.ToValidUTF8(r.Message[:min(len(r.Message), most)], "")
		data, _ := json.Marshal(rec) // it has nothing that can't be encoded
		if len(data) <= asynclock.MaxNoteLen || most == 0 {
			return data
		}
	}
}

// micro is a time in a record; 0: none.
func micro(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// timeOf is the opposite of micro.
func timeOf(micro int64) time.Time {
	if micro == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micro).UTC()
}

// mostCount is the largest number of attempts or missed intervals in a record. A larger one is damage.
const mostCount = 1 << 30

// farthest is the largest number of microseconds in a record, to either side of 1970. A larger one is damage.
const farthest = 1 << 53

// errLater is the error of a record whose form is unknown. Nobody can say in which interval that run was.
var errLater = fmt.Errorf("%w: the record of the last run is of a later release", asynclock.ErrForeignData)

func errNoRecord() error {
	return fmt.Errorf("%w: the note of the key is no record of a run", asynclock.ErrForeignData)
}

// decode reads the note of a run.
func decode(n asynclock.Note) (found, error) {
	if n.Token == 0 {
		return found{}, nil
	}
	var h head
	if err := json.Unmarshal(n.Data, &h); err != nil || h.Version < version {
		return found{}, errNoRecord()
	}
	if h.Version > version {
		return h.found()
	}
	var rec record
	if err := json.Unmarshal(n.Data, &rec); err != nil || !rec.isSound() {
		return found{}, errNoRecord()
	}
	info := &RunInfo{
		Start: time.UnixMicro(rec.Start).UTC(), Began: time.UnixMicro(rec.Began).UTC(), By: rec.By, Attempt: rec.Attempt,
		Ended: timeOf(rec.Ended), Missed: rec.Missed, Failed: rec.Failed, Message: rec.Message, Token: n.Token,
	}
	return found{
		info: info, start: info.Start,
		skipped: skipped{after: timeOf(rec.After), before: timeOf(rec.Before), latest: timeOf(rec.Latest)},
	}, nil
}

// found returns what is known of a record of a later release.
func (h *head) found() (found, error) {
	start, ok := beginning(h.Start)
	latest, isKnown := beginning(h.Latest)
	if !ok || h.Latest != nil && !isKnown {
		return found{}, errLater
	}
	if latest.After(start) {
		start = latest
	}
	return found{later: true, start: start}, nil
}

// beginning reads the beginning of an interval.
func beginning(data json.RawMessage) (at time.Time, ok bool) {
	var micro *int64
	if err := json.Unmarshal(data, &micro); err != nil || micro == nil || *micro > farthest || *micro < -farthest {
		return time.Time{}, false
	}
	return time.UnixMicro(*micro).UTC(), true
}

// isSound reports whether the numbers of a record are possible.
func (r *record) isSound() bool {
	return r.Attempt >= 1 && r.Missed >= 0 && max(r.Attempt, r.Missed) <= mostCount &&
		max(r.Start, r.Began, r.Ended, r.After, r.Before, r.Latest) <= farthest &&
		min(r.Start, r.Began, r.Ended, r.After, r.Before, r.Latest) >= -farthest
}
