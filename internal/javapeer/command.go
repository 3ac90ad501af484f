// SPDX-License-Identifier: Apache-2.0

package javapeer

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Begin gives the peer a command, for one of its threads, and returns where the
// answer will come, for Await or Succeeds. Threads are made as they are named, and
// each carries out its commands in order: locks of Java belong to threads.
func (p *Peer) Begin(thread, verb, key string, args ...any) <-chan string {
	p.t.Helper()
	p.mu.Lock()
	p.last++
	id := strconv.Itoa(p.last)
	p.mu.Unlock()
	answer := p.expect(id)
	words := []string{id, thread, verb, url.QueryEscape(key)}
	for _, a := range args {
		words = append(words, url.QueryEscape(fmt.Sprint(a)))
	}
	if _, err := fmt.Fprintln(p.input, strings.Join(words, " ")); err != nil {
		p.t.Fatalf("the Java peer does not listen: %v", err)
	}
	return answer
}

func (p *Peer) expect(id string) <-chan string {
	answer := make(chan string, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending[id] = answer
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
	case <-p.ended:
		p.t.Fatalf("the Java peer has ended: %s", p.errors.String())
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
