// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// A taker is the other side of a handoff, in a process of its own, like a client. Each line written
// to it requests one take. It answers with the time of the take, and then with an empty line when
// it is ready again.
type taker struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// startTaker starts this program again as the taker of a peer.
func startTaker(ctx context.Context, p peer, w world) (*taker, error) {
	process, in, out, err := startAgain(ctx, "taker", p, w)
	if err != nil {
		return nil, err
	}
	t := &taker{process, in, bufio.NewReader(out)}
	return t, t.awaitReady()
}

// ask lets the taker begin to wait.
func (t *taker) ask() error {
	_, err := io.WriteString(t.in, "take\n")
	return err
}

// took returns the time of the take, after the taker has reported it.
func (t *taker) took() (time.Time, error) {
	line, err := t.out.ReadString('\n')
	if err != nil {
		return time.Time{}, fmt.Errorf("taker: %w", err)
	}
	nanos, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return time.Unix(0, nanos), err
}

func (t *taker) awaitReady() error {
	_, err := t.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("taker: %w", err)
	}
	return nil
}

// kill ends a taker that hangs.
func (t *taker) kill() { _ = t.process.Process.Kill() }

// stop ends the taker.
func (t *taker) stop() error {
	if err := t.in.Close(); err != nil {
		return err
	}
	return t.process.Wait()
}

// take does the work of a taker process.
func take(ctx context.Context, w world, p peer) error {
	if p.is.floor {
		return takeMessages(ctx, w)
	}
	return takeLocks(ctx, w, p)
}

// takeMessages is the floor's taker: a subscriber.
func takeMessages(ctx context.Context, w world) error {
	client, err := rueidis.NewClient(clientOption(w))
	if err != nil {
		return err
	}
	defer client.Close()
	received := make(chan struct{}, 1)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	confirmed := make(chan struct{}, 1)
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(rueidis.PubSubSubscription) {
		select {
		case confirmed <- struct{}{}:
		default:
		}
	})
	go func() { // ends with the process
		failed <- client.Receive(hooked, client.B().Subscribe().Channel(floorChannel).Build(), func(rueidis.PubSubMessage) {
			received <- struct{}{}
		})
	}()
	select {
	case <-confirmed:
	case err := <-failed:
		return err
	}
	return serve(func() (time.Time, error) {
		select {
		case <-received:
			return time.Now(), nil
		case err := <-failed:
			return time.Time{}, err
		}
	}, func() error { return nil })
}

// takeLocks is a client that waits for the lock.
func takeLocks(ctx context.Context, w world, p peer) error {
	c, work, err := p.openWorker(ctx, w)
	if err != nil {
		return err
	}
	var h held
	err = serve(func() (at time.Time, err error) {
		h, err = work.lock(ctx, handoffKey(p.name))
		return time.Now(), err
	}, func() error { return h.Unlock(ctx) })
	return errors.Join(err, c.close(ctx))
}

// serve answers each line with a take, and then gives the key back.
func serve(take func() (time.Time, error), giveBack func() error) error {
	lines := bufio.NewScanner(os.Stdin)
	fmt.Println() // ready
	for lines.Scan() {
		at, err := take()
		if err != nil {
			return err
		}
		fmt.Println(at.UnixNano())
		if err := giveBack(); err != nil {
			return err
		}
		fmt.Println()
	}
	return lines.Err()
}
