// SPDX-License-Identifier: Apache-2.0

package redischeck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/internal/redisslot"
	"github.com/asynclock/asynclock-go/store"
)

// A fakeCluster answers as the three nodes of threeNodes do.
type fakeCluster struct {
	said  map[string]map[string]string // by node and question; healthy otherwise
	down  map[string]error             // by node
	until time.Time                    // when all fall silent; zero: never
	hangs string                       // a node that never answers
	mu    sync.Mutex                   // for asked
	asked map[string]int               // how often a node was, by clock and rules
}

func (c *fakeCluster) ask(ctx context.Context, key string, args []string) ([]string, error) {
	node := parseSlots(threeNodes).addr(redisslot.Of(key))
	if node == c.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if !c.until.IsZero() && time.Now().After(c.until) {
		return nil, errors.New("no answer")
	}
	if err := c.down[node]; err != nil {
		return nil, err
	}
	now := time.Now()
	texts := []string{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000)}
	for _, question := range args {
		text, ok := c.said[node][question]
		switch {
		case ok:
		case question == clusterSlots:
			text = threeNodes
		default:
			text = healthy[question]
		}
		texts = append(texts, text)
	}
	if !slices.Equal(args, []string{clusterSlots}) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked[node]++
	}
	return texts, nil
}

// check returns the findings, in their order. It is called in a bubble.
func (c *fakeCluster) check(ctx context.Context) (findings []store.Finding) {
	c.asked = make(map[string]int)
	d := Deployment{Cluster: true, Guarded: true, Ask: c.ask, Apart: Apart, Own: func(context.Context) store.Finding { return store.Finding{Check: "own"} }}
	for i := range 256 {
		d.Keys = append(d.Keys, fmt.Sprintf("{b%02x}", i))
	}
	Check(ctx, d, func(f store.Finding) { findings = append(findings, f) })
	return findings
}

func names(findings []store.Finding) (names []string) {
	for _, f := range findings {
		names = append(names, f.Check)
	}
	return names
}

var inOrder = []string{"server", "replication", "eviction", "memory", "persistence", "cluster", "own", "clock"}

func TestEachServerOfAClusterIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCluster{said: map[string]map[string]string{"10.0.0.2:7001": {
			"INFO memory": "used_memory:95\r\nmaxmemory:100\r\nmaxmemory_policy:allkeys-lru",
			"INFO stats":  denied,
		}}}
		got := c.check(t.Context())
		if !slices.Equal(names(got), inOrder) {
			t.Errorf("checks: got %q, want %q", names(got), inOrder)
		}
		for node, n := range c.asked {
			if n != 2 {
				t.Errorf("%s: asked %d times, want twice", node, n)
			}
		}
		if len(c.asked) != 3 {
			t.Errorf("asked: got %v, want all three", c.asked)
		}
		for _, f := range got {
			wrong := f.Check == "eviction" || f.Check == "memory"
			if (f.Verdict > store.VerdictOK) != wrong || wrong && !strings.HasPrefix(f.Fact, "10.0.0.2:7001: ") {
				t.Errorf("got %+v, want what is wrong with the second node alone, by its name", f)
			}
			if f.Check == "server" && !strings.Contains(f.Fact, ", and 2 more: Redis") {
				t.Errorf("got %+v, want what the three have in common", f)
			}
		}
	})
}

func TestAServerThatIsDownHidesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCluster{down: map[string]error{"10.0.0.3:7001": errors.New("connection refused")}}
		got := c.check(t.Context())
		if want := append([]string{"server"}, inOrder...); !slices.Equal(names(got), want) {
			t.Errorf("checks: got %q, want %q", names(got), want)
		}
		if f := got[0]; f.Verdict != store.VerdictFail || !strings.Contains(f.Fact, "10.0.0.3:7001: ") || !strings.Contains(f.Fact, "connection refused") {
			t.Errorf("got %+v, want it to name the third node", f)
		}
	})
}

func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for err, fix := range map[error]string{errors.New("no route"): "runs", store.ErrDenied: "the key pattern and the rights of docs/security.md, such as ACL SETUSER <user> +evalsha"} {
			c := &fakeCluster{down: map[string]error{"10.0.0.1:7001": err, "10.0.0.2:7001": err, "10.0.0.3:7001": err}}
			if got := c.check(t.Context()); len(got) != 1 || got[0].Check != "server" || got[0].Verdict != store.VerdictFail || !strings.Contains(got[0].Fix, fix) {
				t.Errorf("%v: got %+v, want one failure with %q", err, got, fix)
			}
		}
	})
}

// A server that accepts and never answers costs some seconds, not the others' findings. If the context ends meanwhile,
// that is no fault of the server.
func TestAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, began := &fakeCluster{hangs: "10.0.0.2:7001"}, time.Now()
		if got := c.check(t.Context()); len(got) != len(inOrder)+1 || got[0].Verdict != store.VerdictFail || !strings.Contains(got[0].Fact, c.hangs) {
			t.Errorf("got %+v, want a failure of the second node, and all of the others", got)
		}
		if took := time.Since(began); took > 2*patience+Apart {
			t.Errorf("took %v, want at most %v", took, 2*patience+Apart)
		}
		for _, ends := range []time.Duration{patience / 2, patience, patience * 3 / 2, 2 * patience} {
			ctx, cancel := context.WithTimeout(t.Context(), ends)
			defer cancel()
			if got := c.check(ctx); len(got) != 0 {
				t.Errorf("%v: got %+v, want nothing", ends, got)
			}
		}
	})
}

// A client's timer may be faster than that of the context.
func TestNothingIsReportedOfAContextThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now())
		cancel()
		for _, ctx := range []context.Context{ctx, late{t.Context()}} {
			if got := (&fakeCluster{}).check(ctx); len(got) != 0 {
				t.Errorf("got %+v, want nothing", got)
			}
		}
	})
}

// late is a context whose deadline is over, and which does not know it yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now(), true }

// Between the looks at the clocks a check ends with its context. So does one whose server falls silent.
func TestACheckThatIsCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := names((&fakeCluster{}).check(ctx)); !slices.Equal(got, inOrder[:len(inOrder)-1]) {
			t.Errorf("got %q, want all but the clock", got)
		}
		got := (&fakeCluster{until: time.Now().Add(time.Second)}).check(t.Context())
		if f := got[len(got)-1]; f.Check != "clock" || f.Verdict != store.VerdictNote || !strings.Contains(f.Fact, "no answer") {
			t.Errorf("got %+v, want a note that the second look has failed", f)
		}
	})
}

// An answer that is not the script's is an error, not a panic.
func TestAnAnswerOfAnother(t *testing.T) {
	for _, texts := range [][]string{nil, {"1"}, {"1", "2", "3"}, {"1", "x"}, {"x", "2"}} {
		d := Deployment{Keys: []string{"k"}, Ask: func(context.Context, string, []string) ([]string, error) { return texts, nil }}
		d.ask(t.Context(), []*server{{key: "k"}}, nil, func(_ *server, a answer) {
			if a.err == nil {
				t.Errorf("%q: got no error", texts)
			}
		})
	}
}
