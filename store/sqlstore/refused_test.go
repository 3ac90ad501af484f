// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// answering returns a session of a store in whose database each routine answers as a test
// says, with items or an error.
func answering(spring *springSettings, answers func(routine string, items []item) ([]answer, error)) *session {
	d := postgres
	d.call = func(_ context.Context, _ *sql.DB, routine, argument string, _ bool) (string, error) {
		var r routineRequest
		if err := json.Unmarshal([]byte(argument), &r); err != nil {
			return "", err
		}
		items, err := answers(routine, r.Items)
		if err != nil {
			return "", err
		}
		out, err := json.Marshal(routineReply{Clock: time.Now().UnixMicro(), Items: items})
		return string(out), err
	}
	s := settings{idle: DefaultIdle, spring: spring}
	return &session{store: &Store{dialect: d, settings: s}, events: func(store.Event) {}}
}

// TestRefusedRequestLeavesItsNeighboursAlone: what the server can't do for one of a batch.
func TestRefusedRequestLeavesItsNeighboursAlone(t *testing.T) {
	t.Parallel()
	asked := make(map[string]int)
	s := answering(nil, func(_ string, items []item) (found []answer, err error) {
		for _, it := range items {
			asked[it.Key]++
		}
		if slices.ContainsFunc(items, func(it item) bool { return it.Key == "bad" }) {
			return nil, coded("22021")
		}
		for range items {
			found = append(found, answer{Status: statusGranted, Token: 1})
		}
		return found, nil
	})
	got := s.Acquire(t.Context(), []store.AcquireRequest{request("a", "a"), request("bad", "b"), request("c", "c")})
	if got[0].Status != store.Granted || !errors.Is(got[1].Err, errServer) || got[2].Status != store.Granted {
		t.Errorf("Acquire beside one that the server refuses: got %+v, want it granted, and that one an error", got)
	}
	if asked["bad"] != 2 {
		t.Errorf("the refused request was sent %d times, want 2", asked["bad"])
	}
}

// TestTakenTicket: who comes back to a place that somebody else has gets another one.
func TestTakenTicket(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d Database) {
		c := join(t, newTables(t, d))
		c.hold(request("key", "a"))
		first := c.acquire(request("key", "b"))
		q := request("key", "c")
		q.Ticket = first.Ticket
		got := c.session.Acquire(t.Context(), []store.AcquireRequest{request("other", "d"), q})
		if got[0].Status != store.Granted {
			t.Errorf("Acquire of a free key: got %+v, want Granted", got[0])
		}
		if got := got[1]; got.Err != nil || got.Status != store.Waiting || got.Ticket <= first.Ticket || got.Rank != 1 {
			t.Errorf("Acquire with the ticket of another: got %+v, want Waiting behind it, with a ticket above %d", got, first.Ticket)
		}
	})
}
