// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/asynclock/asynclock-go/internal/storecheck"
	"github.com/asynclock/asynclock-go/store"
)

var _ store.CheckedStore = (*Store)(nil)

// Check examines the server that the store is connected to, the ensemble, the session and who may use the locks, as
// [store.CheckedStore] says. It also sends a transaction that the server refuses in any case.
func (st *Store) Check(ctx context.Context, report func(store.Finding)) {
	if st.conn == nil {
		report(store.Finding{Check: "server", Verdict: store.VerdictFail, Fact: "a Store that Open did not make"})
		return
	}
	storecheck.Run(ctx, report, st.probe("server", st.checkServer), st.probe("ensemble", st.checkEnsemble),
		st.probe("session", st.checkSession), st.probe("tick", st.checkTick), st.probe("access", st.checkAccess))
}

// probe makes one check, on a goroutine of its own, because the driver's calls take no context. Close waits for it.
func (st *Store) probe(check string, find func(context.Context) (store.Finding, error)) storecheck.Probe {
	return storecheck.Probe{Check: check, Find: func(ctx context.Context) (store.Finding, error) {
		var found store.Finding
		var err error
		done := make(chan struct{})
		begun := st.task(func() {
			defer close(done)
			found, err = find(ctx)
		})
		if !begun {
			return store.Finding{}, store.ErrClosed
		}
		select {
		case <-done:
			return found, err
		case <-ctx.Done():
			return store.Finding{}, ctx.Err()
		}
	}}
}

var errUnlisted = fmt.Errorf("%w: the server does not answer this word of four letters", store.ErrDenied)

const (
	// sayPatience is how long a server has for the answer to a word. It may not know words, and be fit for locks.
	sayPatience = storecheck.Patience / 2
	longestWord = 1 << 16 // of an answer
)

// say sends a word of four letters to the connected server, by a connection of its own.
func (st *Store) say(ctx context.Context, word string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, sayPatience)
	defer cancel()
	server := st.conn.Server()
	conn, err := st.settings.dial(ctx, "tcp", server)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // it has answered, or won't
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	secured, err := st.secure(ctx, conn, server)
	if err != nil {
		return "", err
	}
	if _, err := io.WriteString(secured, word); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(secured, longestWord))
	if err == nil && strings.Contains(string(text), "not in the whitelist") {
		err = errUnlisted
	}
	return string(text), err
}

// field returns what stands behind a name at the beginning of a line.
func field(text, name string) (string, error) {
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, name); found {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("the server's answer has no %q", name)
}

func (st *Store) checkServer(ctx context.Context) (store.Finding, error) {
	found := store.Finding{Fix: "add srvr to 4lw.commands.whitelist in zoo.cfg"}
	text, err := st.say(ctx, "srvr")
	if err == nil {
		found, err = judgeServer(st.conn.Server(), text)
	}
	if found.Verdict == store.VerdictOK { // otherwise it has said what is wrong
		if gone := st.glance(); gone != nil {
			err = st.failure(gone, false)
		}
	}
	return found, err
}

// judgeServer judges the answer to srvr.
func judgeServer(server, text string) (store.Finding, error) {
	version, _ := field(text, "Zookeeper version: ")
	version, _, _ = strings.Cut(version, "-")
	mode, err := field(text, "Mode: ")
	found := store.Finding{Verdict: store.VerdictFail, Fix: "see that a majority of the servers run and reach each other"}
	switch {
	case strings.Contains(text, "not currently serving requests"):
		found.Fact, err = server+" serves nobody: it is without a leader", nil
	case mode == "read-only":
		found.Fact = server + " is read-only: it is without the others"
	default:
		found = store.Finding{Fact: fmt.Sprintf("%s is ZooKeeper %s, %s", server, version, mode)}
	}
	return found, err
}

// configNode has the servers of an ensemble, since ZooKeeper 3.5.
const configNode = "/zookeeper/config"

func (st *Store) checkEnsemble(context.Context) (store.Finding, error) {
	config, _, err := st.conn.Get(configNode)
	if !answered(err) {
		err = st.failure(err, false)
	}
	if err != nil {
		return store.Finding{Fix: "give the store's user the right to read " + configNode}, err
	}
	return judgeEnsemble(string(config), st.hosts.Len()), nil
}

// judgeEnsemble judges the servers that vote, and how many addresses the store has.
func judgeEnsemble(config string, addresses int) store.Finding {
	voters := 0
	for line := range strings.Lines(config) {
		if strings.HasPrefix(line, "server.") && !strings.Contains(line, ":observer") {
			voters++
		}
	}
	found := store.Finding{Verdict: store.VerdictNote, Fix: "run three servers, or five"}
	switch lost := (voters - 1) / 2; {
	case voters == 0:
		found.Fact = "one server stands alone: no lock is given while it is down, and its disk has the only copy"
	case lost == 0:
		found.Fact = fmt.Sprintf("the ensemble has %d servers: no lock is given while one of them is down", voters)
	case addresses < voters:
		found.Fact = fmt.Sprintf("the store has %d of the %d servers' addresses, and reaches none while those are down", addresses, voters)
		found.Fix = "give the store all of them, unless an address stands for several"
	default:
		return store.Finding{Fact: fmt.Sprintf("%d servers vote; locks survive the loss of %d", voters, lost)}
	}
	return found
}

func (st *Store) checkSession(context.Context) (store.Finding, error) {
	return judgeSession(&st.settings, st.SessionTimeout()), nil
}

// ticksPerSession is how many ticks a session timeout should have at least. Half a tick is no time of trust.
const ticksPerSession = 5

// judgeSession judges the timeout that the server has given.
func judgeSession(s *settings, timeout time.Duration) store.Finding {
	requested := s.sessionTimeout
	found := store.Finding{Verdict: store.VerdictNote, Fact: fmt.Sprintf("the session timeout is %v", timeout)}
	if timeout != requested {
		found.Fact += fmt.Sprintf(", and %v were requested", requested)
	}
	switch {
	case timeout > store.DefaultTTL:
		found.Fact += ": the keys of a client that is killed stay taken for so long"
		found.Fix = "request a shorter one (WithSessionTimeout); the servers allow 2 ticks at least, or their minSessionTimeout"
		if !s.shortTTLs {
			found.Verdict = store.VerdictWarn
			found.Fact += fmt.Sprintf("; shorter TTLs are refused, as is the default of %v", store.DefaultTTL)
			found.Fix += "; or use clients with a longer TTL (asynclock.WithTTL)"
		}
	case timeout < ticksPerSession*s.tickTime:
		found.Verdict = store.VerdictWarn
		found.Fact += fmt.Sprintf(", less than %d ticks of %v: a short pause ends all leases", ticksPerSession, s.tickTime)
		found.Fix = "request a longer one (WithSessionTimeout), raise maxSessionTimeout, or lower tickTime"
	case timeout < requested:
		found.Fact += ": leases of a client that is cut off end sooner"
		found.Fix = "raise maxSessionTimeout in zoo.cfg"
	case timeout > requested:
		found.Fact += ": the keys of a client that is killed stay taken for longer"
		found.Fix = "lower minSessionTimeout or tickTime in zoo.cfg"
	default:
		found.Verdict = store.VerdictOK
	}
	return found
}

func (st *Store) checkTick(ctx context.Context) (store.Finding, error) {
	var tick time.Duration
	text, err := st.say(ctx, "conf")
	if err == nil {
		text, err = field(text, "tickTime=")
	}
	if err == nil {
		tick, err = time.ParseDuration(text + "ms")
	}
	if err != nil {
		fix := fmt.Sprintf("see that tickTime in zoo.cfg is %v (WithTickTime), or add conf to 4lw.commands.whitelist there", st.settings.tickTime)
		return store.Finding{Fix: fix}, err
	}
	return judgeTick(st.settings.tickTime, tick), nil
}

// judgeTick judges the tick that the store assumes.
func judgeTick(assumed, tick time.Duration) store.Finding {
	found := store.Finding{
		Verdict: store.VerdictNote,
		Fact:    fmt.Sprintf("the servers' tickTime is %v, and the store assumes %v", tick, assumed),
		Fix:     fmt.Sprintf("give the store WithTickTime(%v)", tick),
	}
	switch {
	case tick > assumed:
		found.Verdict = store.VerdictWarn
		found.Fact += ": a lease may outlive its session"
	case tick < assumed:
		found.Fact += ": leases end sooner than they have to"
	default:
		return store.Finding{Fact: fmt.Sprintf("the servers' tickTime is %v, as the store assumes", tick)}
	}
	return found
}

func (st *Store) checkAccess(context.Context) (store.Finding, error) {
	root := st.settings.names.root
	if err := st.tryToCreate(); errors.Is(err, store.ErrDenied) {
		return store.Finding{
			Verdict: store.VerdictFail,
			Fact:    fmt.Sprintf("the store's user may not create locks below %s: %v", root, err),
			Fix:     "give it that right (setAcl), or use another user or root",
		}, nil
	} else if err != nil {
		return store.Finding{}, err
	}
	acl, _, err := st.conn.GetACL(root)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return store.Finding{Fix: "give the store's user the right to read " + root}, st.failure(err, false)
	}
	return judgeAccess(&st.settings, acl, err == nil), nil
}

// tryToCreate returns what keeps the user from creating a lock and an owner's node. Only the server knows how it reads a
// list: there are schemes of all kinds. Of the transaction nothing is done, because it creates the lock twice.
func (st *Store) tryToCreate() error {
	path, err := st.settings.names.lock(uuid.NewString())
	if err != nil {
		return err
	}
	lock, owners := &zk.CreateRequest{Path: path, Acl: st.settings.acl}, &zk.CreateRequest{Path: path + "/node", Acl: st.settings.acl}
	if _, err = st.conn.Multi(lock, owners, lock); answered(err) {
		return nil
	}
	return st.failure(err, true)
}

// changes are the rights by which others can take keys away.
const changes = zk.PermWrite | zk.PermDelete | zk.PermAdmin

// judgeAccess judges who may change the root, if it exists, and the nodes that the store creates.
func judgeAccess(s *settings, root []zk.ACL, exists bool) store.Finding {
	what := ""
	switch {
	case isOpen(s.acl):
		what = "the locks below " + s.names.root
	case isOpen(root):
		what = s.names.root
	case exists:
		return store.Finding{Fact: "not everybody may change " + s.names.root + " and what the store creates there"}
	default:
		return store.Finding{Fact: s.names.root + " does not exist yet; not everybody may change what the store creates there"}
	}
	found := store.Finding{Verdict: store.VerdictNote, Fact: "everybody who reaches the servers may change " + what}
	if s.digest {
		found.Verdict = store.VerdictWarn
		found.Fact += ", although the store has a user of its own"
		found.Fix = "set an access control list for " + what + " (setAcl), and leave out WithACL for everybody"
		return found
	}
	found.Fix = "use WithDigest or WithACL in all programs, if that is not meant, and setAcl for nodes that exist"
	return found
}

// isOpen reports whether everybody may change what has this list.
func isOpen(acl []zk.ACL) bool {
	for _, a := range acl {
		if a.Scheme == "world" && a.Perms&changes != 0 {
			return true
		}
	}
	return false
}
