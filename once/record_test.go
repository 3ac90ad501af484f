// SPDX-License-Identifier: Apache-2.0

package once

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	at := time.Date(2026, 11, 23, 17, 0, 0, 1000, time.UTC)
	for _, r := range []RunInfo{
		{Start: at, Began: at.Add(time.Second), By: "a", Attempt: 1, Token: 7},
		{
			Start: at, Began: at, Ended: at.Add(time.Hour), By: strings.Repeat(`"`, asynclock.MaxDescriptionLen), Attempt: 1 << 30,
			Missed: 9, Failed: true, Message: "no paper", Token: 1 << 53,
		},
		{Start: time.UnixMicro(-1).UTC(), Began: time.UnixMicro(-2).UTC(), Ended: time.UnixMicro(-3).UTC(), Attempt: 1, Token: 1},
	} {
		data := r.encode(skipped{})
		got, err := decode(asynclock.Note{Data: data, Token: r.Token})
		if err != nil || *got.info != r || got.start != r.Start || got.later {
			t.Errorf("got %+v, error %v; want %+v", got, err, r)
		}
	}
}

func TestALongMessageIsCutUntilItFits(t *testing.T) {
	for _, message := range []string{
		strings.Repeat("x", 5000), strings.Repeat("\x00", 5000), strings.Repeat("\u2028", 5000), strings.Repeat("\xff", 5000),
		"x" + strings.Repeat("\u4e16", 5000), strings.Repeat("<", 5000),
	} {
		at := time.Unix(1<<30, 0)
		r := RunInfo{Start: at, Began: at, By: strings.Repeat("<", asynclock.MaxDescriptionLen), Attempt: 1, Failed: true, Message: message}
		data := r.encode(skipped{})
		if len(data) > asynclock.MaxNoteLen {
			t.Errorf("a message of %q…: got a note of %d bytes, want %d at most", message[:3], len(data), asynclock.MaxNoteLen)
		}
		got, err := decode(asynclock.Note{Data: data, Token: 1})
		if err != nil || !strings.HasPrefix(message, got.info.Message) {
			t.Errorf("got %+v, error %v; want the beginning of the message", got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"v":1,"start":1,"began":2,"ended":3,"by":"a","attempt":1,"missed":1,"failed":true,"message":"m"}`))
	f.Add([]byte(`{"v":1,"start":-9007199254740992,"attempt":1}`))
	f.Add([]byte("leader"))
	f.Add([]byte(`{"v":1,"start":5,"began":2,"attempt":1,"after":5,"before":9,"latest":12}`))
	f.Add([]byte(`{"v":2,"start":1,"latest":2,"attempt":"two"}`))
	f.Add([]byte(`{"v":2,"start":-9223372036854775808}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode(asynclock.Note{Data: data, Token: 1})
		if err != nil {
			if !errors.Is(err, asynclock.ErrForeignData) || r != (found{}) {
				t.Errorf("got %+v, error %v; want ErrForeignData", r, err)
			}
			return
		}
		if (r.info == nil) != r.later || r.start.Before(time.UnixMicro(-farthest)) || r.start.After(time.UnixMicro(farthest)) {
			t.Fatalf("got %+v, want a run, or the beginning of a later release's", r)
		}
		if r.later {
			return
		}
		got, err := decode(asynclock.Note{Data: r.info.encode(r.skipped), Token: 1})
		if err != nil {
			t.Fatalf("what was read can't be read again: %v", err)
		}
		got.info.Message, got.info.By = r.info.Message, r.info.By // they may have been cut or mended
		if *got.info != *r.info || got.skipped != r.skipped {
			t.Errorf("got %+v and %+v, want %+v and %+v", got.info, got.skipped, r.info, r.skipped)
		}
	})
}

func TestStartAt(t *testing.T) {
	day := 24 * time.Hour
	at := time.Date(2026, 11, 23, 17, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		s    schedule
		now  time.Time
		want time.Time
	}{
		{schedule{time.Hour, 0}, at, at.Add(-30 * time.Minute)},
		{schedule{time.Hour, 0}, at.Add(30*time.Minute - 30*time.Second), at.Add(30 * time.Minute)}, // not a tenth
		{schedule{time.Hour, 0}, at.Add(30*time.Minute - 30*time.Second - time.Microsecond), at.Add(-30 * time.Minute)},
		{schedule{time.Second, 0}, at.Add(900 * time.Millisecond), at.Add(time.Second)},
		{schedule{time.Second, 0}, at.Add(899 * time.Millisecond), at},
		{schedule{day, 3 * time.Hour}, at, at.Add(-14*time.Hour - 30*time.Minute)},
		{schedule{day, 18 * time.Hour}, at, at.Add(-23*time.Hour - 30*time.Minute)},
		{schedule{day, 0}, time.Unix(-1, 0).Add(-time.Minute), time.Unix(0, 0).Add(-day)},
		{schedule{day, 0}, time.Unix(0, 0).Add(-day), time.Unix(0, 0).Add(-day)},
		{schedule{time.Hour, 0}, at.In(time.FixedZone("elsewhere", 1800)), at.Add(-30 * time.Minute)},
	} {
		if got := c.s.startAt(c.now); !got.Equal(c.want) || got.Location() != time.UTC {
			t.Errorf("every %v, offset %v, at %v: got %v, want %v", c.s.every, c.s.offset, c.now, got, c.want)
		}
	}
}
