// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

func TestAPartOfThePoolStandsInLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ size, room int }{{1, 1}, {2, 1}, {5, 1}, {20, 5}, {100, longestLine}, {0, longestLine}} {
		db := sql.OpenDB(new(cutDriver))
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(c.size)
		conn := &Conn{db: db}
		for range 2 { // what has left makes room
			got := 0
			for got <= c.room && conn.enterLine() {
				got++
			}
			if got != c.room {
				t.Errorf("a pool of %d: %d stand in line, want %d", c.size, got, c.room)
			}
			conn.standing.Store(0)
		}
	}
}

// TestLockedRowIsGivenUp: in time for the caller, and with an error that says that nothing was done.
func TestLockedRowIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ has, alone, together time.Duration }{
		{time.Minute, longRowPatience, rowPatience}, {time.Second, time.Second / 2, time.Second / 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := answering(func(_ string, items []Item) ([]Answer, error) {
				if len(items) == 1 && items[0].Key == "locked" {
					return nil, coded("55P03")
				}
				answers := []Answer{{Status: StatusGranted, Token: 1}}
				if len(items) == 2 {
					answers = append(answers, Answer{Status: StatusLocked})
				}
				return answers, nil
			})
			for _, keys := range [][]string{{"locked"}, {"free", "locked"}} {
				ctx, cancel := context.WithTimeout(t.Context(), c.has)
				defer cancel()
				began := time.Now()
				errs := acquire(ctx, s, keys...)
				if err := errs[len(errs)-1]; !errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrOutcomeUnknown) {
					t.Errorf("%q: got %v, want ErrUnreachable", keys, err)
				}
				if len(keys) == 2 && errs[0] != nil {
					t.Errorf("beside a locked row: got %v, want no error", errs[0])
				}
				most := map[int]time.Duration{1: c.alone, 2: c.together}[len(keys)]
				if took := time.Since(began); took > most || took < most/4 {
					t.Errorf("%q with %v left: given up after %v, want up to %v", keys, c.has, took, most)
				}
			}
			_ = s.conn.db.Close()
		})
	}
}
