// SPDX-License-Identifier: Apache-2.0

package once_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/once"
)

// A process of a later release has begun the job. It may have died, and may have ended the run.
func TestARunOfALaterReleaseIsNotRepeated(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		begin := time.Now()
		w.setNote(c, fmt.Sprintf(`{"v":2,"start":%d,"attempt":1}`, begin.UnixMicro()))
		if last := w.wantDone(c); last != (once.RunInfo{}) {
			w.Errorf("the record of a later release: got %+v, want none that can be read", last)
		}
		_, err := once.LastRun(w.Context(), c, key)
		w.wantError(err, asynclock.ErrForeignData)
		time.Sleep(3*every - early - time.Second)
		if run := w.wantRan(c); run.Attempt != 1 || run.Missed != 1 {
			w.Errorf("the run after one of a later release: got %+v, want attempt 1 with 1 missed", run)
		}
		w.wantDone(c)
	})
}

func TestARunOfALaterReleaseInALaterIntervalIsNotRepeated(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		w.setNote(c, fmt.Sprintf(`{"v":2,"start":%d,"latest":%d}`, time.Now().UnixMicro(), time.Now().Add(3*every).UnixMicro()))
		w.wantDone(c)
		time.Sleep(3 * every)
		w.wantDone(c)
		time.Sleep(every)
		w.wantRan(c)
	})
}

// Nobody knows in which interval that run was.
func TestALaterReleasesRecordWithoutABeginning(t *testing.T) {
	story(t, func(w *world) {
		c := w.client()
		for _, data := range []string{
			`{"v":2}`, `{"v":2,"start":"today"}`, `{"v":2,"start":null}`, `{"v":2,"start":1e99}`, `{"v":9,"start":9007199254740993}`,
			`{"v":2,"start":-9223372036854775808}`, `{"v":2,"start":1,"latest":"today"}`, `{"v":2,"latest":1}`,
		} {
			w.setNote(c, data)
			_, err := once.Do(w.Context(), c, key, every, w.never)
			w.wantError(err, asynclock.ErrForeignData)
			_, err = once.LastRun(w.Context(), c, key)
			w.wantError(err, asynclock.ErrForeignData)
		}
	})
}

func TestEveryGoesOnBesideALaterRelease(t *testing.T) {
	for name, form := range map[string]string{"known beginning": `{"v":2,"start":%d}`, "unknown beginning": `{"v":2,"begin":%d}`} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				c := w.client()
				w.setNote(c, fmt.Sprintf(form, time.Now().UnixMicro()))
				reads := w.noteReads()
				var d diary
				e := w.every(c, every, d.job)
				w.pass(every - early - time.Second)
				if runs, _ := d.read(); len(runs) != 0 {
					w.Fatalf("runs in the interval of a later release: got %d, want none", len(runs))
				}
				if n := w.noteReads() - reads; n != 1 {
					w.Errorf("requests in that interval: got %d, want 1", n)
				}
				w.setNote(c, `{"v":1,"attempt":1}`) // of long ago
				w.pass(every)
				if runs, _ := d.read(); len(runs) != 1 {
					w.Errorf("runs in the next interval: got %d, want 1", len(runs))
				}
				e.ends(w)
			})
		})
	}
}
