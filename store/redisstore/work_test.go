// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/redisstore/redisdriver"
)

// A meter has each script count its work: commands, their words, the elements of their replies, and what
// they delete.
type meter struct {
	redisdriver.Driver

	counted string // a Redis key: a hash with a field for each run
}

const metered = `
local real = redis
local run = real.call('HINCRBY', '$counted', 'runs', 1)
local function count(work) real.call('HINCRBY', '$counted', run, work) end
local function does(call, ...)
  local words = {...}
  count(#words)
  for i = 2, words[1] == 'DEL' and #words or 1 do
    local kind = real.call('TYPE', words[i]).ok
    count(kind == 'zset' and real.call('ZCARD', words[i]) or kind == 'hash' and real.call('HLEN', words[i]) or 0)
  end
  local reply = call(...)
  count(type(reply) == 'table' and #reply or 0)
  return reply
end
local redis = {call = function(...) return does(real.call, ...) end, pcall = function(...) return does(real.pcall, ...) end}
`

func (m meter) metered(run redisdriver.Run) redisdriver.Run {
	run.Script = redisconn.NewScript(strings.ReplaceAll(metered, "$counted", m.counted) + run.Script.Source)
	return run
}

func (m meter) Eval(ctx context.Context, run redisdriver.Run) redisdriver.Result {
	return m.Driver.Eval(ctx, m.metered(run))
}

func (m meter) EvalAll(ctx context.Context, runs []redisdriver.Run) []redisdriver.Result {
	runs = slices.Clone(runs)
	for i := range runs {
		runs[i] = m.metered(runs[i])
	}
	return m.Driver.EvalAll(ctx, runs)
}

// metered opens a store whose scripts count their work.
func (sv *server) metered(t *testing.T) *Store {
	t.Helper()
	sv.acquaint(t, long)
	conn, err := redisconn.Open(sv.Option)
	if err != nil {
		t.Fatal(err)
	}
	st, err := NewWith(meter{rueidisDriver{conn}, sv.prefix + ":work"}, WithPrefix(sv.prefix), WithoutLogger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

// most is the work of the longest run of a script in a call.
func (sv *server) most(t *testing.T, call func()) (work int) {
	t.Helper()
	sv.Do(t, "DEL", sv.prefix+":work")
	call()
	for word := range strings.FieldsSeq(strings.Trim(sv.Do(t, "HVALS", sv.prefix+":work"), "[]")) { // how many runs there were is one of them
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		work = max(work, n)
	}
	return work
}

// No script does more for it that very many have a key, wait for it or have died.
func TestNoScriptsWorkGrowsWithWhoHasAKeyOrWaits(t *testing.T) {
	t.Parallel()
	all := loads()
	maps.Copy(all, dying())
	for name, l := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sv := onMiniredis(t)
			c := join(t, sv.metered(t))
			work := func(n int) int {
				key := strconv.Itoa(n)
				l.crowd(n).make(t, sv, key)
				sv.Pass(10 * time.Second)
				return sv.most(t, func() { l.do(c, key) })
			}
			const few, many = 300, 900
			if at, got := work(few), work(many); got > at+at/10 {
				t.Errorf("work of the longest run beside %d and %d others: got %d and %d, want about the same", few, many, at, got)
			} else {
				t.Log(got)
			}
		})
	}
}

// A crowd is who has a key and who waits for it, as the scripts would have written it.
type crowd struct {
	share         store.Share
	members, dead int // of the members, those whose time is over
	limits        int // on how many limits they count
	waiters       int
	deadWaiters   int  // at the head
	over          bool // the group has ended, and its members are still there
	withdrawn     int  // owners that were withdrawn long ago
}

const soon, later = 30 * time.Minute, time.Hour

func (cr crowd) make(t testing.TB, sv *server, key string) {
	t.Helper()
	now := time.Now()
	base := now.UnixMicro()
	add := func(kind byte, verb string, words []string) {
		for page := range slices.Chunk(words, 10_000) {
			sv.Do(t, append([]string{verb, sv.redisKey(key, kind)}, page...)...)
		}
	}
	var members, details, queue, waiters []string
	limits, used := make(map[int]int), 0
	for i := range cr.members {
		owner, ends, limit, weight := fmt.Sprintf("m%06d", i), now.Add(later).UnixMilli(), 0, 0
		if i < cr.dead {
			ends = now.Add(-soon).UnixMilli()
		}
		if cr.share.Mode == store.Permits {
			limit, weight = int(cr.share.Limit)-i%max(cr.limits, 1), 1
			limits[limit]++
		}
		used += weight
		members = append(members, strconv.FormatInt(ends, 10), owner)
		details = append(details, owner, fmt.Sprint("- - ", weight, " ", limit, " ", base+int64(i), " somebody"))
	}
	for i := range cr.waiters {
		owner, deadline := fmt.Sprintf("w%06d", i), now.Add(later).UnixMilli()
		if i < cr.deadWaiters {
			deadline = 1
		}
		queue = append(queue, strconv.FormatInt(base+int64(cr.members+i), 10), owner)
		waiters = append(waiters, owner, fmt.Sprint(deadline, " - 1000000 - somebody"))
	}
	var withdrawn []string
	for i := range cr.withdrawn {
		withdrawn = append(withdrawn, "1", strconv.Itoa(i))
	}
	add('x', "ZADD", withdrawn)
	add('q', "ZADD", queue)
	add('w', "HSET", waiters)
	last := strconv.FormatInt(base+int64(cr.members+cr.waiters), 10)
	sv.Do(t, "SET", sv.redisKey(key, 'f'), last, "PX", "10000000")
	if cr.members == 0 {
		sv.Do(t, "SET", sv.redisKey(key, 'l'), strconv.FormatInt(base, 10)+" holder - t somebody", "PX", "10000000")
		return
	}
	add('s', "ZADD", members)
	add('h', "HSET", details)
	if cr.over {
		return
	}
	kind, shown := "=p ", last
	if cr.share.Mode == store.Shared {
		kind, shown = "=r ", strconv.FormatInt(base, 10)
	}
	limit, least, larger := counted(limits)
	for i := 0; i < len(larger); i += 2 {
		larger[i], larger[i+1] = larger[i+1], larger[i]
	}
	add('c', "ZADD", larger)
	sv.Do(t, "SET", sv.redisKey(key, 'l'), fmt.Sprint(kind, last, " ", shown, " 0 ", used, " ", limit, " ", least, " ", len(larger)/2, " -"), "PX", "10000000")
}

// A load is a key with a crowd, and what is done there.
type load struct {
	crowd func(n int) crowd
	do    func(c *client, key string)
	ends  bool // the crowd is another one then
}

var someReaders = store.Share{Mode: store.Shared}

func somePermits(n int) crowd {
	return crowd{share: store.Share{Mode: store.Permits, Weight: 1, Limit: store.MaxPermits}, members: n}
}

// permit is a request for one permit, which counts on as many as the crowd does, or fewer.
func permit(key, owner string, fewer int32) store.AcquireRequest {
	return permits(key, owner, 1, store.MaxPermits-fewer)
}

// loads are what every script does, beside n others.
func loads() map[string]load {
	waiting := func(n int) crowd { return crowd{waiters: n} }
	reading := func(n int) crowd { return crowd{share: someReaders, members: n} }
	leave := func(c *client, key, owner string) { c.release(store.ReleaseRequest{Key: key, Owner: owner}) }
	return map[string]load{
		"a permit, taken and given back": {crowd: somePermits, do: func(c *client, key string) {
			c.Want(permit(key, "a", 0), store.Granted)
			leave(c, key, "a")
		}},
		"the only one who counts on fewer permits": {crowd: somePermits, do: func(c *client, key string) {
			c.Want(permit(key, "a", 7), store.Granted)
			leave(c, key, "a")
		}},
		"permits, all count on other numbers": {crowd: func(n int) crowd {
			cr := somePermits(n)
			cr.limits = n
			return cr
		}, do: func(c *client, key string) {
			c.Want(permits(key, "a", 1, 300_000), store.Granted)
			leave(c, key, "a")
			c.Inspect(key)
		}},
		"the newest leaves, and somebody asks": {crowd: somePermits, do: func(c *client, key string) {
			c.Want(permit(key, "a", 0), store.Granted)
			leave(c, key, "a")
			c.Want(tryOf(redistest.Request(key, "writer")), store.Held)
		}},
		"permits, a part of them": {crowd: somePermits, do: func(c *client, key string) {
			c.Want(permits(key, "a", 2, store.MaxPermits), store.Granted)
			c.release(store.ReleaseRequest{Key: key, Owner: "a", Rest: &store.Share{Mode: store.Permits, Weight: 1, Limit: store.MaxPermits}})
			leave(c, key, "a")
		}},
		"a number of permits that is set": {crowd: somePermits, do: func(c *client, key string) {
			for _, limit := range []int32{store.MaxPermits, 0} {
				if err := c.session.SetLimit(context.Background(), key, limit); err != nil {
					c.T.Error(err)
				}
			}
		}},
		"permits, inspected and listed": {crowd: somePermits, do: func(c *client, key string) {
			c.Inspect(key)
			list(c.T, c, key)
		}},
		"a reader, come and gone": {crowd: reading, do: func(c *client, key string) {
			c.Want(read(key, "a"), store.Granted)
			leave(c, key, "a")
		}},
		"a writer behind readers": {crowd: reading, do: func(c *client, key string) {
			c.Want(redistest.Request(key, "writer"), store.Waiting)
			leave(c, key, "writer")
		}},
		"readers, inspected and listed": {crowd: reading, do: func(c *client, key string) {
			c.Inspect(key)
			list(c.T, c, key)
		}},
		"renewals of shares, and of lost ones": {crowd: somePermits, do: func(c *client, key string) {
			batch := []store.RenewRequest{{Key: key, Owner: "m000000", TTL: 2 * later, Share: store.Share{Mode: store.Permits}}}
			for i := range renewalsPerCall - 1 {
				batch = append(batch, store.RenewRequest{Key: key, Owner: strconv.Itoa(i), TTL: later, Share: someReaders})
			}
			c.session.Renew(context.Background(), batch)
		}},
		"readers, taken by force": {crowd: reading, do: func(c *client, key string) { c.force(key) }, ends: true},
		"readers that have ended": {crowd: func(n int) crowd { return crowd{share: someReaders, members: n, over: true} }, do: func(c *client, key string) {
			c.Want(read(key, "a"), store.Granted)
			leave(c, key, "a")
		}, ends: true},
		"owners that were withdrawn": {crowd: func(n int) crowd { return crowd{withdrawn: n} }, do: func(c *client, key string) {
			c.release(store.ReleaseRequest{Key: key, Owner: "holder", Uncertain: true})
		}, ends: true},
		"waiters, one comes and goes": {crowd: waiting, do: func(c *client, key string) {
			c.Want(redistest.Request(key, "a"), store.Waiting)
			leave(c, key, "a")
		}},
		"waiters, inspected and listed": {crowd: waiting, do: func(c *client, key string) {
			c.Inspect(key)
			list(c.T, c, key)
		}},
		"waiters, the queue is full": {crowd: waiting, do: func(c *client, key string) {
			q := redistest.Request(key, "a")
			q.QueueLimit = 1
			c.Want(q, store.Full)
		}},
		"waiters for permits, the queue is full": {crowd: func(n int) crowd {
			cr := somePermits(n)
			cr.waiters = n
			return cr
		}, do: func(c *client, key string) {
			q := permit(key, "a", 0)
			q.QueueLimit = 1
			c.Want(q, store.Full)
		}},
		"waiters, handed on": {crowd: waiting, do: func(c *client, key string) { leave(c, key, "holder") }, ends: true},
	}
}

// dying are loads where very many have died at the same time.
func dying() map[string]load {
	permits := func(n int) crowd {
		cr := somePermits(n + 1)
		cr.dead = n
		return cr
	}
	waiters := func(n int) crowd { return crowd{waiters: n + 1, deadWaiters: n} }
	behind := func(n int) crowd {
		cr := somePermits(1)
		cr.waiters, cr.deadWaiters = n+1, n
		return cr
	}
	return map[string]load{
		"permits of the dead": {crowd: permits, do: func(c *client, key string) {
			c.Inspect(key)
			got := c.Want(permit(key, "a", 0), store.Granted)
			if info := c.Inspect(key); info.Used != 2 || got.Limit != store.MaxPermits {
				c.T.Errorf("Inspect: got %d of %d permits, want 2", info.Used, got.Limit)
			}
		}},
		"a key given back to the dead, and to one who lives": {crowd: waiters, do: func(c *client, key string) {
			if !c.releaseAgain(store.ReleaseRequest{Key: key, Owner: "holder"}).WasHeld {
				c.T.Error("WasHeld: got false, want true")
			}
			if info := c.Inspect(key); !info.Held || info.Waiters != 0 {
				c.T.Errorf("Inspect: got %+v, want that who lives has the key", info)
			}
		}},
		"a key taken by force, for one who lives": {crowd: waiters, do: func(c *client, key string) { c.force(key) }},
		"permits behind the dead": {crowd: behind, do: func(c *client, key string) {
			c.Want(permit(key, "a", 0), store.Waiting) // behind who takes all
		}},
		"permits given back to the dead": {crowd: behind, do: func(c *client, key string) {
			c.release(store.ReleaseRequest{Key: key, Owner: "m000000"})
			if info := c.Inspect(key); !info.Held || info.Mode != store.Exclusive || info.Waiters != 0 {
				c.T.Errorf("Inspect: got %+v, want that who lives has the key", info)
			}
		}},
		"a number of permits set, behind the dead": {crowd: behind, do: func(c *client, key string) {
			if err := c.session.SetLimit(context.Background(), key, 5); err != nil {
				c.T.Error(err)
			}
		}},
	}
}
