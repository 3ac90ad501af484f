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
}

// version is of the record's form. Another one is never misread.
const version = 1

// encode returns the note of a run. Its message is cut until it fits.
func (r *RunInfo) encode() []byte {
	rec := record{
		Version: version, Start: r.Start.UnixMicro(), Began: r.Began.UnixMicro(),
		By: r.By, Attempt: r.Attempt, Missed: r.Missed, Failed: r.Failed,
	}
	if !r.Ended.IsZero() {
		rec.Ended = r.Ended.UnixMicro()
	}
	for most := longestMessage; ; most /= 2 {
		rec.Message = strings.ToValidUTF8(r.Message[:min(len(r.Message), most)], "")
		data, _ := json.Marshal(rec) // it has nothing that can't be encoded
		if len(data) <= asynclock.MaxNoteLen || most == 0 {
			return data
		}
	}
}

// mostCount is the largest number of attempts or missed intervals in a record. A larger one is damage.
const mostCount = 1 << 30

// decode reads the note of a run. It returns nil if there is none.
func decode(n asynclock.Note) (*RunInfo, error) {
	if n.Token == 0 {
		return nil, nil //nolint:nilnil // there was no run
	}
	var rec record
	if err := json.Unmarshal(n.Data, &rec); err != nil {
		return nil, fmt.Errorf("%w: the note of the key is no record of a run", asynclock.ErrForeignData)
	}
	const farthest = 1 << 53
	switch {
	case rec.Version > version:
		return nil, fmt.Errorf("%w: the record of the last run is of version %d, of a later release", asynclock.ErrForeignData, rec.Version)
	case rec.Version != version, rec.Attempt < 1, rec.Missed < 0, max(rec.Attempt, rec.Missed) > mostCount,
		max(rec.Start, rec.Began, rec.Ended) > farthest, min(rec.Start, rec.Began, rec.Ended) < -farthest:
		return nil, fmt.Errorf("%w: the note of the key is no record of a run", asynclock.ErrForeignData)
	}
	info := &RunInfo{
		Start: time.UnixMicro(rec.Start).UTC(), Began: time.UnixMicro(rec.Began).UTC(), By: rec.By, Attempt: rec.Attempt,
		Missed: rec.Missed, Failed: rec.Failed, Message: rec.Message, Token: n.Token,
	}
	if rec.Ended != 0 {
		info.Ended = time.UnixMicro(rec.Ended).UTC()
	}
	return info, nil
}
