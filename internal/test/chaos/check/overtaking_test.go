// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// owner is what the store told about an owner of key k. A writer has the mode Exclusive.
func (h tale) owner(kind history.Kind, op string, mode history.Mode, token int64, begin, end history.Time) tale {
	return append(h, history.Record{Kind: kind, Op: op, Key: "k", Mode: mode, Token: token, TTL: 50 * ms, Begin: begin * ms, End: end * ms})
}

// queues is a writer of w1 that is queued at 10 and let in at 60, with token 9.
func (h tale) queues() tale {
	return h.owner(history.Queued, "w1/o", history.Exclusive, 0, 9, 10).owner(history.Admitted, "w1/o", history.Exclusive, 9, 9, 60).
		held("w1/1", 9, 9, 61, 62)
}

// comes is a reader of w2 that asks at 20 and is let in at 21, with the token of readers before that writer.
func (h tale) comes() tale { return h.read("w2/1", 5, 20, 21, 30) }

// tenure is an owner of w2 that shares the key from 2 on.
func (h tale) tenure() tale { return h.owner(history.Admitted, "w2/o", history.Shared, 5, 1, 2) }

// hears is tenure whose client hears of a writer at 15.
func (h tale) hears() tale { return h.tenure().owner(history.Heard, "w2/o", history.Shared, 0, 15, 15) }

func TestReadersThatMayOvertake(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]tale{
		"one whose client has not heard":       tale{}.queues().tenure().comes(),
		"one whose client hears later":         tale{}.queues().read("w2/0", 5, 1, 3, 40).tenure().owner(history.Heard, "w2/o", history.Shared, 0, 25, 25).comes(),
		"one that finds what lies":             tale{}.queues().hears().comes(),
		"one that finds what others gave back": tale{}.queues().read("w2/0", 5, 1, 3, 19).hears().comes(),
		"one that asks before the writer":      tale{}.queues().read("w2/1", 5, 9, 21, 30),
		"one that comes after the writer":      tale{}.queues().read("w2/1", 11, 20, 63, 70),
		"one that comes with a place before":   tale{}.queues().owner(history.Queued, "w2/p", history.Shared, 0, 4, 5).owner(history.Admitted, "w2/p", history.Shared, 5, 4, 21).comes(),
		"one that is told twice":               tale{}.queues().tenure().owner(history.Admitted, "w2/o", history.Shared, 5, 1, 40).comes(),
		"a writer that has lost its place":     tale{}.queues().owner(history.Queued, "w1/o", history.Exclusive, 0, 9, 30).owner(history.Admitted, "w1/o", history.Exclusive, 9, 9, 60).comes(),
		"a writer that has left":               tale{}.owner(history.Queued, "w1/o", history.Exclusive, 0, 9, 10).owner(history.Gone, "w1/o", history.Exclusive, 0, 15, 15).comes(),
		"a writer that nobody saw in a queue":  tale{}.owner(history.Admitted, "w1/o", history.Exclusive, 9, 9, 60).comes(),
		"a writer that a loss has moved":       tale{}.queues().fault("FLUSHALL", 12, 13, true).comes(),
		"a writer that cannot be reached":      tale{}.fault("failover", 1, 2, false).moving().queues().comes(),
		"a writer that an empty store forgets": tale{}.queues().emptied(12, 13).comes(),
	} {
		t.Run(name, func(t *testing.T) { good.wantRules(t) })
	}
}

func TestReadersThatMayNotOvertake(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]tale{
		"one whose client has heard":           tale{}.queues().read("w2/0", 5, 1, 3, 40).hears().comes(),
		"one that the store lets in":           tale{}.queues().owner(history.Admitted, "w2/o", history.Shared, 5, 12, 21).comes(),
		"one of a place behind":                tale{}.queues().owner(history.Queued, "w2/p", history.Shared, 0, 11, 12).owner(history.Admitted, "w2/p", history.Shared, 5, 11, 21).comes(),
		"one with others that have left":       tale{}.queues().tenure().owner(history.Gone, "w2/o", history.Shared, 0, 15, 15).comes(),
		"one with others of another client":    tale{}.queues().owner(history.Admitted, "w3/o", history.Shared, 5, 1, 2).comes(),
		"one with others of another token":     tale{}.queues().owner(history.Admitted, "w2/o", history.Shared, 4, 1, 2).comes(),
		"one with others that came afterwards": tale{}.queues().owner(history.Admitted, "w2/o", history.Shared, 5, 12, 25).comes(),
		"one of nobody":                        tale{}.queues().comes(),
		"one beside a fault that loses naught": tale{}.queues().fault("worker paused", 12, 13, false).comes(),
		"one beside another key's loss":        tale{}.queues().fault("foreign write", 12, 13, true).ofKey("j").comes(),
	} {
		t.Run(name, func(t *testing.T) { bad.wantRules(t, "overtaking") })
	}
}

// moving makes the last fault one after which messages may go astray.
func (h tale) moving() tale {
	h[len(h)-1].Moves = true
	return h
}

// ofKey makes the last fault one of a key.
func (h tale) ofKey(key string) tale {
	h[len(h)-1].Key = key
	return h
}

// TestClientHearsOfAWriterInTime: a message may be lost, but a renewal tells the client within five seconds.
// A fault in between may make that later.
func TestClientHearsOfAWriterInTime(t *testing.T) {
	t.Parallel()
	const late = 5300
	h := tale{}.owner(history.Queued, "w1/o", history.Exclusive, 0, 9, 10).owner(history.Admitted, "w1/o", history.Exclusive, 9, 9, late+30).
		owner(history.Admitted, "w2/o", history.Shared, 5, 1, 2)
	for i := range history.Time(54) { // others before it
		h = h.read("w2/"+string(rune('a'+i)), 5, 2+90*i, 3+90*i, 91+90*i)
	}
	slow := h.read("w2/late", 5, late, late+1, late+9)
	slow.wantRules(t, "overtaking")
	slow.fault("server paused", 100, 500, false).wantRules(t)
	for _, r := range []struct {
		from history.Time
		want []string
	}{{11_900, nil}, {12_100, []string{"overtaking"}}} { // a place that was had so long after a fault
		tale{}.fault("failover", 1, 2, false).moving().owner(history.Queued, "w1/o", history.Exclusive, 0, r.from, r.from+1).
			owner(history.Admitted, "w1/o", history.Exclusive, 9, r.from, r.from+9).read("w2/1", 5, r.from+2, r.from+3, r.from+4).wantRules(t, r.want...)
	}
	if r := (tale{}).queues().fault("FLUSHALL", 12, 13, true).comes().wantRules(t); r.Moved != 1 || r.Behind != 0 {
		t.Errorf("got %d readers that are not judged and %d that are, want 1 and none", r.Moved, r.Behind)
	}
	if r := h.read("w2/late", 5, 4900, 4901, 4902).wantRules(t); r.Behind != 54 || r.Unheard != 4890*time.Millisecond {
		t.Errorf("got %d readers, at most %v late, want 54, 4.89s", r.Behind, r.Unheard)
	}
}
