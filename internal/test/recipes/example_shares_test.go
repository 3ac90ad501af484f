// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

type config struct {
	mu    sync.Mutex
	token int64 // under which it was loaded
	text  string
}

// Configuration is loaded once after each change of it.
func Example_config() {
	with(func(ctx context.Context, locks *asynclock.Client) error {
		stored := "blue"
		load := func(context.Context) (string, error) {
			fmt.Println("loads")
			return stored, nil
		}
		var c config
		read := func() error {
			return c.read(ctx, locks, load, func(text string) { fmt.Println("color:", text) })
		}
		if err := errors.Join(read(), read()); err != nil {
			return err
		}
		err := locks.WithLock(ctx, "config", func(context.Context, *asynclock.Lease) error {
			stored = "red"
			return nil
		})
		return errors.Join(err, read())
	})
	// Output:
	// loads
	// color: blue
	// color: blue
	// loads
	// color: red
}

func (c *config) read(ctx context.Context, locks *asynclock.Client, load func(context.Context) (string, error), use func(string)) error {
	return locks.WithRLock(ctx, "config", func(ctx context.Context, lease *asynclock.Lease) (err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.token != lease.Token() { // there was a writer since
			if c.text, err = load(ctx); err != nil {
				return err
			}
			c.token = lease.Token()
		}
		use(c.text)
		return nil
	}, asynclock.WithRetention(time.Minute))
}

// A coordinator waits until all workers are done.
func Example_latch() {
	with(func(ctx context.Context, locks *asynclock.Client) error {
		started := make(chan error)
		for range 3 {
			go func() {
				if err := work(ctx, locks, started, func() { fmt.Println("works") }); err != nil {
					fmt.Println(err)
				}
			}()
		}
		for range 3 {
			if err := <-started; err != nil {
				return err
			}
		}
		return coordinate(ctx, locks, func() { fmt.Println("all are done") })
	})
	// Output:
	// works
	// works
	// works
	// all are done
}

func work(ctx context.Context, locks *asynclock.Client, started chan<- error, job func()) error {
	return locks.WithRLock(ctx, "import:7", func(context.Context, *asynclock.Lease) error {
		started <- nil // tells the coordinator, in whatever way they talk
		job()
		return nil
	})
}

func coordinate(ctx context.Context, locks *asynclock.Client, next func()) error {
	return locks.WithLock(ctx, "import:7", func(context.Context, *asynclock.Lease) error {
		next() // nobody works any more
		return nil
	})
}

// Workers start together.
func Example_gate() {
	with(func(ctx context.Context, locks *asynclock.Client) error {
		gate, err := locks.Lock(ctx, "gate:7")
		if err != nil {
			return err
		}
		var workers sync.WaitGroup
		for range 3 {
			workers.Go(func() {
				if err := await(ctx, locks); err != nil {
					fmt.Println(err)
				}
				fmt.Println("starts")
			})
		}
		fmt.Println("opens") // once the workers are ready
		err = gate.Unlock(ctx)
		workers.Wait()
		return err
	})
	// Output:
	// opens
	// starts
	// starts
	// starts
}

func await(ctx context.Context, locks *asynclock.Client) error {
	ready, err := locks.RLock(ctx, "gate:7") // waits for the writer that holds the gate
	if err != nil {
		return err
	}
	return ready.Unlock(ctx)
}
