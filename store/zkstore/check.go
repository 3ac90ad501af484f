// SPDX-License-Identifier: Apache-2.0

package zkstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/asynclock/asynclock-go/store"
)

var _ store.CheckedStore = (*Store)(nil)

// Check examines the server that the store is connected to, the ensemble, the session and who may use the locks, as
// [store.CheckedStore] says.
func (st *Store) Check(ctx context.Context, report func(store.Finding)) {
	if st.conn == nil {
		report(store.Finding{Check: "server", Verdict: store.VerdictFail, Fact: "a Store that Open did not make"})
		return
	}
	for _, p := range []struct {
		check string
		find  func(context.Context) store.Finding
	}{
		{"server", st.checkServer}, {"ensemble", st.checkEnsemble}, {"session", st.checkSession}, {"tick", st.checkTick}, {"access", st.checkAccess},
	} {
		found := st.find(ctx, p.find)
		if ctx.Err() != nil {
			return
		}
		found.Check = p.check
		report(found)
		if found.Verdict == store.VerdictFail { // nothing else can be found out
			return
		}
	}
}

// findPatience bounds a check.
const findPatience = 3 * time.Second

// find makes one check, on a goroutine of its own, because the driver's calls take no context.
func (st *Store) find(ctx context.Context, check func(context.Context) store.Finding) store.Finding {
	ctx, cancel := context.WithTimeout(ctx, findPatience)
	defer cancel()
	found := make(chan store.Finding, 1)
	st.mu.Lock()
	begun := st.taskLocked(func() { found <- check(ctx) })
	st.mu.Unlock()
	if !begun {
		return unknown(store.ErrClosed, "")
	}
	select {
	case f := <-found:
		return f
	case <-ctx.Done():
		return unknown(ctx.Err(), "")
	}
}

// unknown is the finding of a check that has failed. The right is what it takes.
func unknown(err error, right string) store.Finding {
	f := store.Finding{Verdict: store.VerdictNote, Fact: "not known: " + err.Error()}
	switch {
	case errors.Is(err, zk.ErrNoAuth), errors.Is(err, errUnlisted):
		f.Fix = right
	case isSilence(err):
		f = store.Finding{
			Verdict: store.VerdictFail, Fact: "the ensemble does not answer: " + err.Error(),
			Fix: "see that its servers run, that the addresses are right, and that nothing between them and this machine drops packets",
		}
	}
	return f
}

// isSilence reports whether the server answers no further question either.
func isSilence(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrClosed) ||
		errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer)
}

var errUnlisted = errors.New("the server does not answer this word of four letters")

const (
	// sayPatience is how long a server has for the answer to a word.
	sayPatience = 2 * time.Second
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
func field(text, name string) (value string, found bool) {
	for line := range strings.Lines(text) {
		if value, found = strings.CutPrefix(line, name); found {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

func (st *Store) checkServer(ctx context.Context) store.Finding {
	text, err := st.say(ctx, "srvr")
	if err != nil {
		return unknown(err, "add srvr to 4lw.commands.whitelist in zoo.cfg")
	}
	return judgeServer(st.conn.Server(), text)
}

// judgeServer judges the answer to srvr.
func judgeServer(server, text string) store.Finding {
	version, _ := field(text, "Zookeeper version: ")
	version, _, _ = strings.Cut(version, "-")
	switch mode, found := field(text, "Mode: "); {
	case !found && !strings.Contains(text, "not currently serving"):
		return unknown(errors.New("the answer to srvr has no mode"), "")
	case !found:
		return store.Finding{
			Verdict: store.VerdictFail,
			Fact:    server + " serves nobody: it is without a leader",
			Fix:     "see that a majority of the servers run and reach each other",
		}
	case mode == "read-only":
		return store.Finding{
			Verdict: store.VerdictFail,
			Fact:    server + " is read-only: it is without the others",
			Fix:     "see that a majority of the servers run and reach each other",
		}
	default:
		return store.Finding{Fact: fmt.Sprintf("%s is ZooKeeper %s, %s", server, version, mode)}
	}
}

// configNode has the servers of an ensemble, since ZooKeeper 3.5.
const configNode = "/zookeeper/config"

func (st *Store) checkEnsemble(context.Context) store.Finding {
	config, _, err := st.conn.Get(configNode)
	if err != nil {
		return unknown(err, "give the store's user the right to read "+configNode)
	}
	return judgeEnsemble(string(config), st.hosts.Len())
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

func (st *Store) checkSession(context.Context) store.Finding {
	return judgeSession(&st.settings, st.SessionTimeout())
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

func (st *Store) checkTick(ctx context.Context) store.Finding {
	text, err := st.say(ctx, "conf")
	if err == nil {
		if value, found := field(text, "tickTime="); found {
			var tick time.Duration
			if tick, err = time.ParseDuration(value + "ms"); err == nil {
				return judgeTick(st.settings.tickTime, tick)
			}
		} else {
			err = errors.New("the answer to conf has no tickTime")
		}
	}
	return unknown(err, fmt.Sprintf("see that tickTime in zoo.cfg is %v (WithTickTime), or add conf to 4lw.commands.whitelist there", st.settings.tickTime))
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

func (st *Store) checkAccess(context.Context) store.Finding {
	root := st.settings.names.root
	acl, _, err := st.conn.GetACL(root)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return unknown(err, "give the store's user the right to read "+root)
	}
	return judgeAccess(&st.settings, acl, err == nil)
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
	case exists && !s.mayCreate(root):
		return store.Finding{
			Verdict: store.VerdictFail,
			Fact:    "the access control list of " + s.names.root + " names others, and not the store's user: it may create no locks there",
			Fix:     "give the store the user that the list names (WithDigest), or let the list name the store's (setAcl)",
		}
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

// mayCreate reports whether the list lets the store create nodes. It says so also of those whom the server knows by
// something else than a password: by an address, by a certificate or by Kerberos.
func (s *settings) mayCreate(acl []zk.ACL) bool {
	own := ""
	if s.digest {
		own = zk.DigestACL(zk.PermCreate, s.user, s.password)[0].ID
	}
	for _, a := range acl {
		if a.Perms&zk.PermCreate != 0 && (a.Scheme != "digest" || a.ID == own) {
			return true
		}
	}
	return false
}
