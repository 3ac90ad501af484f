// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/redis/rueidis"
)

// A fakeClient answers each command as its test says.
type fakeClient struct {
	rueidis.Client

	answers chan error
}

func (c *fakeClient) B() rueidis.Builder { return rueidis.Builder{} }

func (c *fakeClient) Close() {}

func (c *fakeClient) Do(context.Context, rueidis.Completed) rueidis.RedisResult {
	return rueidis.NewErrorResult(<-c.answers)
}

// A probe that began earlier may fail with the connection before, which says nothing about the next.
func TestTheFailureOfAnEarlierProbeIsNotTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &fakeClient{answers: make(chan error)}
		l := newLine(10)
		l.client = client
		l.place <- struct{}{}
		l.abandon() // begins a probe
		broken, refused := errors.New("connection broken"), errors.New("connection refused")

		ends := make(chan error, 3)
		for range 3 {
			go func() { ends <- l.connect(t.Context()) }()
		}
		synctest.Wait()
		client.answers <- broken
		synctest.Wait()
		client.answers <- nil
		for range 3 {
			if err := <-ends; err != nil {
				t.Errorf("got %v, want that there is a connection", err)
			}
		}
		if got := len(l.place); got != 0 {
			t.Errorf("places taken: got %d, want none", got)
		}

		l.place <- struct{}{}
		l.abandon()
		for range 3 {
			go func() { ends <- l.connect(t.Context()) }()
		}
		synctest.Wait()
		client.answers <- broken
		synctest.Wait()
		client.answers <- refused
		for range 3 {
			var without *unsent
			if err := <-ends; !errors.As(err, &without) || !errors.Is(without.cause, refused) {
				t.Errorf("got %v, want the failure of the probe that began later", err)
			}
		}
		synctest.Wait()
	})
}
