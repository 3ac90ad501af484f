// SPDX-License-Identifier: Apache-2.0

package pubsub_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/asynclock/asynclock-go/pubsub"
)

// A memoryChannel is a Source for one process with at most one subscriber.
type memoryChannel struct {
	mu      sync.Mutex
	deliver func(payload string) // nil: nobody is subscribed
}

func (c *memoryChannel) Receive(ctx context.Context, confirmed func(), deliver func(payload string)) error {
	c.subscribe(deliver)
	defer c.subscribe(nil)
	confirmed() // after this point each message is delivered
	<-ctx.Done()
	return ctx.Err()
}

func (c *memoryChannel) subscribe(deliver func(payload string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deliver = deliver
}

func (c *memoryChannel) Publish(_ context.Context, payload string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deliver != nil {
		c.deliver(payload) // never blocks
	}
	return nil
}

func Example() {
	channel := &memoryChannel{}
	looked := make(chan struct{})

	inbox := pubsub.Open(channel, pubsub.Handler{
		Up: func() {
			fmt.Println("up: look at everything")
		},
		Message: func(payload string) {
			fmt.Println("message:", payload)
			close(looked)
		},
		Down: func(err error) {
			fmt.Println("down: poll until the next up:", err)
		},
	})
	defer inbox.Close(context.Background())

	<-inbox.Settled()
	fmt.Println("live:", inbox.Live())

	if err := channel.Publish(context.Background(), "look at 42"); err != nil {
		fmt.Println(err)
	}
	<-looked

	// Unordered output:
	// live: true
	// up: look at everything
	// message: look at 42
}
