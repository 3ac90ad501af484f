// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

// A room knows who is in it: readers together, or one writer.
type room struct {
	t *testing.T

	mu               sync.Mutex
	readers, writers int
	together         int   // the most readers at a time
	lastWriter, last int64 // the largest tokens, of writers and of all
}

// enter checks who is there, and the order of tokens.
func (r *room) enter(l *asynclock.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isReader := l.Mode() == asynclock.Shared
	if r.writers > 0 || r.readers > 0 && !isReader {
		r.t.Errorf("mode %v meets %d readers and %d writers", l.Mode(), r.readers, r.writers)
	}
	if isReader && l.Token() <= r.lastWriter || !isReader && l.Token() <= r.last {
		r.t.Errorf("token of mode %v: got %d after %d, and after a writer's %d", l.Mode(), l.Token(), r.last, r.lastWriter)
	}
	r.last = max(r.last, l.Token())
	if isReader {
		r.readers++
		r.together = max(r.together, r.readers)
		return
	}
	r.writers++
	r.lastWriter = l.Token()
}

func (r *room) leave(mode asynclock.Mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if mode == asynclock.Shared {
		r.readers--
	} else {
		r.writers--
	}
}

// visit takes the key at random, as a reader, a writer, or a writer that goes on as a reader.
func (r *room) visit(c *asynclock.Client, dice *rand.Rand) error {
	take := c.RLock
	writes, readsOn := dice.IntN(3) == 0, dice.IntN(2) == 0
	if writes {
		take = c.Lock
	}
	l, err := take(r.t.Context(), "key")
	if err != nil {
		return err
	}
	r.enter(l)
	time.Sleep(time.Duration(dice.IntN(2000)) * time.Microsecond)
	r.leave(l.Mode())
	if writes && readsOn {
		if l, err = l.Downgrade(r.t.Context()); err != nil {
			return err
		}
		r.enter(l)
		time.Sleep(time.Duration(dice.IntN(2000)) * time.Microsecond)
		r.leave(l.Mode())
	}
	return l.Unlock(r.t.Context())
}

// Many clients take a key at random. A writer is alone, and tokens rise from writer to writer, with those
// of readers between them.
func TestTheRoomOfReadersAndWriters(t *testing.T) {
	t.Parallel()
	const clients, callers, rounds = 4, 3, 12
	zktest.Servers(t)
	root, r := newRoot(), &room{t: t}
	var visiting sync.WaitGroup
	for i := range clients {
		c := locks(t, open(t, root, ofAllKeys))
		for caller := range callers {
			dice := rand.New(rand.NewPCG(uint64(i), uint64(caller)))
			visiting.Go(func() {
				for range rounds {
					if err := r.visit(c, dice); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	visiting.Wait()
	if r.together < 2 {
		t.Errorf("readers at a time: got %d at most, want several", r.together)
	}
}
