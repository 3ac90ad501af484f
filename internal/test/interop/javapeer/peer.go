// SPDX-License-Identifier: Apache-2.0

package javapeer

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A Peer is what a test plays against: in Java, with threads that no other peer has.
type Peer struct {
	t       *testing.T
	process *Process
	handle  string // what Java calls it
}

// Open opens a peer, with arguments that the process's Peer.java knows. It is closed
// with the test.
func (p *Process) Open(t *testing.T, arguments ...string) *Peer {
	t.Helper()
	peer := &Peer{t, p, p.next()}
	t.Cleanup(peer.Close)
	peer.Succeeds(peer.send("main", "open", arguments...))
	return peer
}

// Close closes what was opened for the peer, and waits for that. The peer leaves its locks
// behind, as if it had been killed, except those that end with a connection. A second Close
// is allowed, and so is one after the process was killed.
func (p *Peer) Close() {
	p.t.Helper()
	select {
	case <-p.process.ended:
	default:
		p.Succeeds(p.send("any", "close"))
	}
}

// Begin gives the peer a command, for one of its threads, and returns where the
// answer will come, for Await or Succeeds. Threads are made as they are named, and
// each carries out its commands in order: locks of Java belong to threads.
func (p *Peer) Begin(thread, verb, key string, args ...any) <-chan string {
	p.t.Helper()
	arguments := []string{key}
	for _, a := range args {
		arguments = append(arguments, fmt.Sprint(a))
	}
	return p.send(thread, verb, arguments...)
}

func (p *Peer) send(thread, verb string, arguments ...string) <-chan string {
	p.t.Helper()
	id := p.process.next()
	answer := p.process.expect(id)
	words := []string{id, p.handle, thread, verb}
	for _, a := range arguments {
		words = append(words, url.QueryEscape(a))
	}
	if _, err := fmt.Fprintln(p.process.input, strings.Join(words, " ")); err != nil {
		p.t.Fatalf("the Java peer does not listen: %v", err)
	}
	return answer
}

// Await waits for an answer: the value, or an exception's class, and then the value is
// the class with the message.
func (p *Peer) Await(answer <-chan string) (value, exception string) {
	p.t.Helper()
	select {
	case text := <-answer:
		verdict, rest, _ := strings.Cut(text, " ")
		if verdict != "ok" {
			exception, _, _ = strings.Cut(rest, " ")
			return rest, exception
		}
		value, err := url.QueryUnescape(rest)
		if err != nil {
			p.t.Fatalf("the Java peer answers %q: %v", text, err)
		}
		return value, ""
	case <-p.process.ended:
		p.t.Fatalf("the Java process has ended: %s", p.process.errors.String())
	case <-time.After(Patience):
		p.t.Fatalf("the Java peer did not answer in %v", Patience)
	}
	panic("unreachable")
}

// Succeeds waits for an answer that is no exception.
func (p *Peer) Succeeds(answer <-chan string) string {
	p.t.Helper()
	value, exception := p.Await(answer)
	if exception != "" {
		p.t.Fatalf("in Java: got %s, want success", value)
	}
	return value
}

// Do gives a command to the thread main and waits for its success.
func (p *Peer) Do(verb, key string, args ...any) string {
	p.t.Helper()
	value, exception := p.Await(p.Begin("main", verb, key, args...))
	if exception != "" {
		p.t.Fatalf("%s of %q in Java: got %s, want success", verb, key, value)
	}
	return value
}

// Fails gives a command to the thread main and returns the class of the exception
// that it throws, empty for success.
func (p *Peer) Fails(verb, key string, args ...any) (exception string) {
	p.t.Helper()
	_, exception = p.Await(p.Begin("main", verb, key, args...))
	return exception
}
