// SPDX-License-Identifier: Apache-2.0

package quorumstore_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// TestAQuorumAsOneStore: three clients ask a quorum and one memstore for the same, one request at a time. Both answer the
// same.
//
// By design an owner that was handed the key has only the door, until it asks. So here it asks as soon as it is told, as
// a client does. It asks again when an answer says so. The quorum trusts no lease in the last moment of its TTL, so
// requests come at whole seconds, and no TTL ends there. A client that has lost a lease gives back its votes before it asks why, and
// that may hand the key on. Then the quorum says "stolen" where one store says "expired".
func TestAQuorumAsOneStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sides := [2]*side{newSide(t, memstore.New()), newSide(t, ofThree(t))}
		runs := 0
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) { // a bubble has no deadline, which rapid would ask for
			runs++
			p := pair{T: t, sides: sides, key: fmt.Sprint("key", runs)}
			client := func(act func(int)) func(*rapid.T) {
				return func(t *rapid.T) { act(rapid.IntRange(0, 2).Draw(t, "client")) }
			}
			t.Repeat(map[string]func(*rapid.T){
				"acquire": client(p.request), "acquire again": client(p.request),
				"renew": client(p.renew), "release": client(func(i int) { p.act(i, release) }), "force": client(func(i int) { p.act(i, force) }),
				"time": func(t *rapid.T) { time.Sleep(time.Duration(rapid.IntRange(1, 5).Draw(t, "seconds")) * time.Second) },
				"":     func(*rapid.T) { p.both(0, inspect) },
			})
			for i := range p.owners {
				p.act(i, release)
			}
		})
	})
}

// A pair is a key of both stores, and who asks for it.
type pair struct {
	*rapid.T

	sides  [2]*side
	key    string
	ids    int
	owners [3]owner
}

// An owner has the same id in both stores.
type owner struct {
	store.AcquireRequest // the last one

	status  [2]store.AcquireStatus
	tickets [2]int64
	renewal time.Duration // the TTL of the next one
}

func (p *pair) both(client int, do step) {
	o, outcomes := &p.owners[client], [2]string{}
	for n, s := range p.sides {
		outcomes[n] = do(p, o, s.sessions[client], n)
		synctest.Wait()
	}
	if outcomes[0] != outcomes[1] {
		p.Fatalf("client %d, %s: got %q, want %q", client, o.Owner, outcomes[1], outcomes[0])
	}
	if o.status[0] != store.Granted && o.status[0] != store.Waiting {
		*o = owner{}
	}
}

// act does a step. Those who are told to ask do so.
func (p *pair) act(client int, do step) {
	p.both(client, do)
	for n := 0; n < len(p.sides); n++ {
		for len(p.sides[n].told) > 0 {
			told := <-p.sides[n].told
			if i := slices.IndexFunc(p.owners[:], func(o owner) bool { return o.Owner == told && o.status[0] == store.Waiting }); i >= 0 {
				p.both(i, acquire)
				n = 0
			}
		}
	}
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
}

func (p *pair) request(client int) {
	o := &p.owners[client]
	switch {
	case o.status[0] == store.Granted: // it would renew
		return
	case o.Owner == "":
		p.ids++
		o.Owner = fmt.Sprintf("%s/%d", p.key, p.ids)
	}
	o.Key, o.Description, o.TTL, o.WaiterTTL = p.key, o.Owner, p.ttl(), 9*time.Second+time.Second/2
	o.GrantTTL, o.Wait = o.TTL, o.status[0] == store.Waiting || rapid.Bool().Draw(p.T, "wait")
	p.act(client, acquire)
}

func (p *pair) renew(client int) {
	if o := &p.owners[client]; o.Owner != "" {
		o.renewal = p.ttl()
		p.act(client, renew)
	}
}

func (p *pair) ttl() time.Duration {
	return time.Duration(rapid.IntRange(1, 4).Draw(p.T, "TTL"))*time.Second + time.Second/2
}
