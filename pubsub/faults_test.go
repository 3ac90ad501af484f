// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynclock/asynclock-go/pubsub"
)

// A brokenLine is a source whose connections fail at random, as real ones do:
// a connection that has lost one message has lost all that follow.
type brokenLine struct {
	mu         sync.Mutex
	dice       *rand.Rand
	refuse     bool // no new subscriptions
	noPublish  bool // probes fail
	dead       bool // of the connection: it carries nothing more
	subscribed bool
	confirm    func()
	deliver    func(string)
	end        chan error // with room for one, one for each Receive
}

func (b *brokenLine) Receive(ctx context.Context, confirmed func(), deliver func(string)) error {
	b.mu.Lock()
	if b.refuse {
		b.mu.Unlock()
		return errors.New("refused")
	}
	end := make(chan error, 1)
	b.confirm, b.deliver, b.end = confirmed, deliver, end
	b.subscribed, b.dead = true, false
	b.mu.Unlock()
	confirmed()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.subscribed = false
	}()
	select {
	case err := <-end:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *brokenLine) Publish(_ context.Context, payload string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.noPublish {
		return errors.New("no publish")
	}
	b.sendLocked(payload)
	return nil
}

func (b *brokenLine) sendLocked(payload string) {
	if b.subscribed && !b.dead {
		b.deliver(payload)
	}
}

// fail does one random thing to the line.
func (b *brokenLine) fail() {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.dice.IntN(6) {
	case 0, 1: // the subscription ends
		if b.subscribed && len(b.end) == 0 {
			b.dead = true
			b.end <- nil
		}
	case 2: // half open
		b.dead = true
	case 3: // the source reconnects by itself
		if b.subscribed && len(b.end) == 0 {
			b.dead = false
			b.confirm()
		}
	case 4:
		b.refuse = !b.refuse
	case 5:
		b.noPublish = !b.noPublish
	}
}

func (b *brokenLine) heal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse, b.noPublish = false, false
}

// A history holds what happened: a message published ("3"), or what the handler was told
// ("<3", "<up", "<down"), in the order of a common lock.
type history struct {
	mu     sync.Mutex
	events []string
}

func (h *history) add(event string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
}

// TestNoMessageIsLostUnnoticed is the guarantee: whatever happens to the line,
// each message is passed on, once and in order, or an Up follows; and an inbox
// whose server is well again becomes live.
func TestNoMessageIsLostUnnoticed(t *testing.T) {
	t.Parallel()
	for _, slow := range []bool{false, true} {
		for seed := range uint64(150) {
			synctest.Test(t, func(t *testing.T) {
				h := randomHistory(t, seed, slow)
				checkHistory(t, h.events, slow)
				if t.Failed() {
					t.Fatalf("seed %d, slow %v", seed, slow)
				}
			})
		}
	}
}

// slowness of a handler makes the queue overflow a few times in a history.
const slowness = 200 * time.Millisecond

func randomHistory(t *testing.T, seed uint64, slow bool) *history {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 1))
	line := &brokenLine{dice: dice}
	h := &history{}
	told := func(event string) {
		h.add(event)
		if slow {
			time.Sleep(slowness)
		}
	}
	inbox := pubsub.Open(line, pubsub.Handler{
		Message: func(payload string) { told("<" + payload) },
		Up:      func() { told("<up") },
		Down:    func(error) { told("<down") },
	})
	defer inbox.Close(context.Background())

	rarely := []int{100, 5000}[seed%2] // many faults hide what a single one does
	for id := range 5000 {
		h.add(strconv.Itoa(id))
		line.mu.Lock()
		line.sendLocked(strconv.Itoa(id))
		line.mu.Unlock()
		if dice.IntN(rarely) == 0 {
			line.fail()
		}
		switch dice.IntN(20) {
		case 0:
			time.Sleep(time.Duration(dice.Int64N(int64(2 * time.Second))))
		case 1, 2:
			synctest.Wait()
		}
	}
	line.heal()
	time.Sleep(12*time.Second + 30*time.Second + 1024*slowness)
	wantLive(t, inbox, true)
	return h
}

func checkHistory(t *testing.T, events []string, overflows bool) {
	t.Helper()
	lastUp, lastID := -1, -1
	isDown := false
	toldOf := map[string]bool{}
	for i, event := range events {
		switch {
		case event == "<up":
			lastUp, isDown = i, false
		case event == "<down":
			if isDown && !overflows {
				t.Errorf("event %d: down twice in one outage", i)
			}
			isDown = true
		case event[0] == '<':
			id, err := strconv.Atoi(event[1:])
			if err != nil || id <= lastID {
				t.Errorf("event %d: message %s after %d", i, event, lastID)
			}
			lastID = id
			toldOf[event[1:]] = true
		}
	}
	if isDown {
		t.Error("the last thing told is down, yet the inbox is live")
	}
	for i, event := range events {
		if event[0] != '<' && i > lastUp && !toldOf[event] {
			t.Errorf("message %s was lost, and no Up followed", event)
		}
	}
}

// Real time, real races; the race detector is the judge.
func TestManyInboxesUnderRealConcurrency(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for seed := range uint64(8) {
		all.Go(func() {
			line := &brokenLine{dice: rand.New(rand.NewPCG(seed, 2))}
			inbox := pubsub.Open(line, pubsub.Handler{
				Message: func(string) {},
				Up:      func() { line.fail() },
				Down:    func(error) { line.heal() },
			})
			<-inbox.Settled()
			var users sync.WaitGroup
			for range 4 {
				users.Go(func() {
					for i := range 500 {
						_ = inbox.Live()
						line.mu.Lock()
						line.sendLocked(strconv.Itoa(i))
						line.mu.Unlock()
						if i%100 == 0 {
							line.fail()
						}
					}
				})
			}
			users.Go(func() { inbox.Close(context.Background()) })
			inbox.Close(context.Background())
			users.Wait()
		})
	}
	all.Wait()
}
