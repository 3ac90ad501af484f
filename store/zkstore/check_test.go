// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/internal/test/servers"
	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/zkstore/internal/zktest"
)

// check has a store examine its servers. It returns the findings by their checks, whose order is always the same.
func check(t *testing.T, st *Store) map[string]store.Finding {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testPatience)
	defer cancel()
	var order []string
	found := make(map[string]store.Finding)
	st.Check(ctx, func(f store.Finding) {
		order = append(order, f.Check)
		found[f.Check] = f
	})
	want := "server ensemble session tick access"
	if found["server"].Verdict == store.VerdictFail {
		want = "server"
	}
	if got := strings.Join(order, " "); got != want {
		t.Errorf("checks: got %s, want %s", got, want)
	}
	return found
}

// wantFinding checks a finding. The fact and the fix are parts of what it says.
func wantFinding(t *testing.T, what string, got store.Finding, verdict store.Verdict, fact, fix string) {
	t.Helper()
	if got.Verdict != verdict || !strings.Contains(got.Fact, fact) || !strings.Contains(got.Fix, fix) || (got.Fix == "") != (fix == "") {
		t.Errorf("%s: got %v, %q, fix %q, want %v, %q, fix %q", what, got.Verdict, got.Fact, got.Fix, verdict, fact, fix)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	root := newRoot()
	found := check(t, open(t, root, WithSessionTimeout(store.DefaultTTL)))
	wantFinding(t, "server", found["server"], store.VerdictOK, "is ZooKeeper 3.", "")
	wantFinding(t, "ensemble", found["ensemble"], store.VerdictNote, "stands alone", "three servers")
	wantFinding(t, "session", found["session"], store.VerdictOK, "timeout is 15s", "")
	wantFinding(t, "tick", found["tick"], store.VerdictOK, "tickTime is 200ms", "")
	wantFinding(t, "access", found["access"], store.VerdictNote, "locks below "+root, "WithDigest")

	found = check(t, open(t, root, WithTickTime(2*servers.Tick)))
	wantFinding(t, "session of 2 minutes", found["session"], store.VerdictNote, "timeout is 2m0s", "request a shorter one")
	wantFinding(t, "tick that is shorter", found["tick"], store.VerdictNote, "sooner than they have to", "WithTickTime(200ms)")
	found = check(t, open(t, root, WithTickTime(servers.Tick/2), WithSessionTimeout(2*servers.Tick)))
	wantFinding(t, "session of 4 ticks", found["session"], store.VerdictWarn, "less than 5 ticks", "raise maxSessionTimeout")
	wantFinding(t, "tick that is longer", found["tick"], store.VerdictWarn, "outlive its session", "WithTickTime(200ms)")
}

// TestCheckOfAccess: who may take keys away.
func TestCheckOfAccess(t *testing.T) {
	t.Parallel()
	conn, us := zktest.Connect(t, zktest.Servers(t)), WithDigest("us", "secret")
	everybody, readers := zk.WorldACL(zk.PermAll), zk.WorldACL(zk.PermRead|zk.PermCreate)
	others := append(zk.DigestACL(zk.PermAll, "them", "secret"), zk.WorldACL(zk.PermRead)...)
	for name, c := range map[string]struct {
		root    []zk.ACL // nil: it does not exist
		options []Option
		verdict store.Verdict
		fact    string
		fix     string
	}{
		"everybody's":                {everybody, nil, store.VerdictNote, "may change the locks below", "WithDigest"},
		"everybody's, with a user":   {everybody, []Option{us}, store.VerdictWarn, "may change /test-", "setAcl"},
		"of a user, lists otherwise": {readers, []Option{us, WithACL(everybody)}, store.VerdictWarn, "the locks below", "leave out WithACL"},
		"everybody may read":         {readers, []Option{us}, store.VerdictOK, "not everybody may change", ""},
		"not there yet":              {nil, []Option{us}, store.VerdictOK, "does not exist yet", ""},
		"not to be read":             {zk.DigestACL(zk.PermCreate, "us", "secret"), []Option{us}, store.VerdictNote, "not known", "the right to read /test-"},
		"not to administer":          {zk.DigestACL(zk.PermRead|zk.PermCreate, "us", "secret"), []Option{us}, store.VerdictOK, "not everybody may change", ""},
		"others'":                    {others, []Option{us}, store.VerdictFail, "may not create locks below /test-", "setAcl"},
		"of another password":        {append(zk.DigestACL(zk.PermAll, "us", "guess"), others...), []Option{us}, store.VerdictFail, "may not create locks below", "setAcl"},
		"an address's":               {[]zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: "127.0.0.1"}}, []Option{us}, store.VerdictOK, "not everybody may change", ""},
		"locks of others":            {readers, []Option{us, WithACL(others)}, store.VerdictFail, "may not create locks below", "setAcl"},
	} {
		root := newRoot()
		if c.root != nil {
			if _, err := conn.Create(root, nil, 0, c.root); err != nil {
				t.Fatal(err)
			}
		}
		wantFinding(t, name, check(t, open(t, root, c.options...))["access"], c.verdict, c.fact, c.fix)
		if children, _, err := conn.Children(root); err == nil && len(children) > 0 {
			t.Errorf("%s: got %v below the root, want that Check creates nothing", name, children)
		}
	}
}

// TestCheckOfAWordThatIsNotAllowed: a server that does not answer says so, which is not what the check was for.
func TestCheckOfAWordThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	st := open(t, newRoot())
	if text, err := st.say(t.Context(), "mntr"); !errors.Is(err, errUnlisted) {
		t.Errorf("a word that is not in the whitelist: got %q, %v, want that it is not", text, err)
	}
	if f, err := judgeServer("zk1:2181", ""); err == nil {
		t.Errorf("no answer at all, as of a proxy: got %+v, want that nothing is known", f)
	}
}

// TestCheckOfAServerThatDoesNotAnswer: it fails, once, in half the time of a caller who waits for four seconds.
func TestCheckOfAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	w := newWire(t)
	st := open(t, newRoot(), WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if down.Load() {
			return nil, syscall.ECONNREFUSED
		}
		return w.dial(ctx, network, address)
	}))
	down.Store(true)
	wantFinding(t, "down for words alone", check(t, st)["server"], store.VerdictNote, "not known", "")
	w.cut()
	wantFinding(t, "silent", check(t, st)["server"], store.VerdictFail, "no answer within 2s", "see that the server runs")
	w.mend() // breaks the connection
	wantFinding(t, "down", check(t, st)["server"], store.VerdictFail, store.ErrUnreachable.Error(), "see that the server runs")
}

// Answers that the tests' servers don't give.
func TestJudgments(t *testing.T) {
	t.Parallel()
	const three = "server.1=a:2888:3888:participant\nserver.2=b:2888:3888:participant\nserver.3=c:2888:3888:participant;0.0.0.0:2181\nversion=0"
	judge := func(text string) store.Finding {
		found, err := judgeServer("zk1:2181", text)
		if err != nil {
			t.Errorf("%s: got %v, want no error", text, err)
		}
		return found
	}
	asked := &settings{sessionTimeout: store.DefaultTTL, tickTime: time.Second}
	for name, c := range map[string]struct {
		got     store.Finding
		verdict store.Verdict
		fact    string
		fix     string
	}{
		"no leader":       {judge("This ZooKeeper instance is not currently serving requests\n"), store.VerdictFail, "zk1:2181 serves nobody", "majority"},
		"read-only":       {judge("Zookeeper version: 3.8.0-5, built on x\nMode: read-only\n"), store.VerdictFail, "is read-only", "majority"},
		"three":           {judgeEnsemble(three, 3), store.VerdictOK, "3 servers vote; locks survive the loss of 1", ""},
		"observers":       {judgeEnsemble(three+"\nserver.4=d:2888:3888:observer;2181", 3), store.VerdictOK, "3 servers vote", ""},
		"addresses":       {judgeEnsemble(three, 2), store.VerdictNote, "2 of the 3 servers' addresses", "all of them"},
		"two":             {judgeEnsemble(three[:66], 2), store.VerdictNote, "has 2 servers", "three servers"},
		"too long":        {judgeSession(asked, 20*time.Second), store.VerdictWarn, "as is the default of 15s", "longer TTL"},
		"longer":          {judgeSession(&settings{sessionTimeout: 6 * time.Second, tickTime: time.Second}, 8*time.Second), store.VerdictNote, "6s were requested", "lower minSessionTimeout"},
		"shorter":         {judgeSession(asked, 10*time.Second), store.VerdictNote, "15s were requested", "raise maxSessionTimeout"},
		"a longer tick":   {judgeTick(time.Second, 2*time.Second), store.VerdictWarn, "outlive its session", "WithTickTime(2s)"},
		"less than ticks": {judgeSession(asked, 4*time.Second), store.VerdictWarn, "less than 5 ticks of 1s", "raise maxSessionTimeout"},
	} {
		wantFinding(t, name, c.got, c.verdict, c.fact, c.fix)
	}
}

// TestCheckEnds with its context, and reports nothing that it could not find out because of that. A store that is closed
// fails.
func TestCheckEnds(t *testing.T) {
	t.Parallel()
	st := open(t, newRoot())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	st.Check(ctx, func(store.Finding) {
		n++
		cancel()
	})
	if n != 1 {
		t.Errorf("findings until the context was cancelled: got %d, want the first alone", n)
	}
	st.Close()
	wantFinding(t, "a closed store", check(t, st)["server"], store.VerdictFail, store.ErrClosed.Error(), "open the store again")
	var found []store.Finding
	new(Store).Check(t.Context(), func(f store.Finding) { found = append(found, f) })
	if got := fmt.Sprint(found); len(found) != 1 || found[0].Verdict != store.VerdictFail {
		t.Errorf("findings of a store that is only declared: got %s, want one failure", got)
	}
}
