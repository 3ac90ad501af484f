// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A client needs a store; options set the defaults of all its leases.
func ExampleNew() {
	locks, err := asynclock.New(memstore.New(),
		asynclock.WithTTL(10*time.Second),
		asynclock.WithMaxHold(time.Minute), // nobody holds a key for longer than that
		asynclock.WithDescription("billing on host-7"),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(context.Background())

	_, err = asynclock.New(memstore.New(), asynclock.WithTTL(time.Millisecond))
	fmt.Println(errors.Is(err, asynclock.ErrInvalidOption))
	// Output:
	// true
}

// Lock waits as long as its context lasts, and the lease outlives that context.
func ExampleClient_Lock() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	wait, cancel := context.WithTimeout(ctx, 5*time.Second)
	lease, err := locks.Lock(wait, "order:42")
	cancel()
	if err != nil {
		log.Print(err) // errors.Is(err, context.DeadlineExceeded): others were faster
		return
	}
	defer lease.Unlock(ctx)

	fmt.Println(lease.Key(), "is ours:", lease.Valid(time.Second))
	// Output:
	// order:42 is ours: true
}

// TryLock never waits. If the key is held, it says by whom.
func ExampleClient_TryLock() {
	ctx := context.Background()
	store := memstore.New() // one store, two clients, as two processes would have
	day, err := asynclock.New(store, asynclock.WithDescription("the day shift"))
	if err != nil {
		log.Fatal(err)
	}
	defer day.Close(ctx)
	night, err := asynclock.New(store, asynclock.WithDescription("the night shift"))
	if err != nil {
		log.Fatal(err)
	}
	defer night.Close(ctx)

	lease, err := day.Lock(ctx, "crane")
	if err != nil {
		log.Print(err)
		return
	}
	defer lease.Unlock(ctx)

	_, err = night.TryLock(ctx, "crane")
	var held *asynclock.HeldError
	if errors.As(err, &held) { // errors.Is(err, asynclock.ErrHeld), if who does not matter
		fmt.Printf("%s is held by %s, %d wait\n", held.Key, held.Holder, held.Waiters)
	}
	// Output:
	// crane is held by the day shift, 0 wait
}

// A pending lock is a channel, to be selected on with whatever else may happen.
func ExampleClient_LockChan() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	shutdown := make(chan struct{})
	wait, cancel := context.WithCancel(ctx)
	defer cancel() // leaves the queue, if we are still in it
	select {
	case got := <-locks.LockChan(wait, "report"):
		lease, err := got.Lease() // ours since we have received it
		if err != nil {
			log.Print(err)
			return
		}
		defer lease.Unlock(ctx)
		fmt.Println("reporting")
	case <-shutdown:
		fmt.Println("next time")
	}
	// Output:
	// reporting
}

// A loop may ask anew in each turn. The futures of earlier turns keep the key from nobody.
func ExampleClient_LockChan_loop() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	shared := memstore.New()
	others, err := asynclock.New(shared)
	if err != nil {
		log.Fatal(err)
	}
	defer others.Close(context.Background())
	locks, err := asynclock.New(shared)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(context.Background())
	band, err := others.Lock(ctx, "hall")
	if err != nil {
		log.Fatal(err)
	}

	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for turn := 1; ; turn++ {
		select {
		case got := <-locks.LockChan(ctx, "hall"):
			lease, err := got.Lease()
			if err != nil {
				log.Print(err)
				return
			}
			fmt.Println("sweep")
			lease.Unlock(ctx)
			return
		case <-ticks.C:
			if turn == 3 {
				fmt.Println("the band leaves")
				band.Unlock(ctx)
			}
		}
	}
	// Output:
	// the band leaves
	// sweep
}

// WithLock is the everyday form: the key is given back whatever happens, and the
// function's context ends when the lease does.
func ExampleClient_WithLock() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	err = locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
		fmt.Println("held:", lease.Valid(0))
		return errors.New("out of stock")
	})
	fmt.Println(err)
	// Output:
	// held: true
	// out of stock
}

// Do is WithLock for a function that returns something.
func ExampleDo() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	total, err := asynclock.Do(ctx, locks, "ledger", func(context.Context, *asynclock.Lease) (int, error) {
		return 40 + 2, nil
	})
	fmt.Println(total, err)
	// Output:
	// 42 <nil>
}

// A token that goes along with each write protects from a holder that was
// paused, lost its lease, and has not noticed yet.
func ExampleLease_Token() {
	ctx := context.Background()
	store := memstore.New()
	ours, err := asynclock.New(store)
	if err != nil {
		log.Fatal(err)
	}
	defer ours.Close(ctx)
	theirs, err := asynclock.New(store)
	if err != nil {
		log.Fatal(err)
	}
	defer theirs.Close(ctx)

	// The protected resource keeps the largest token it was written under. In a database that is a
	// column, and a condition of each UPDATE.
	var balance int
	var largest int64
	write := func(value int, token int64) error {
		if token < largest { // an equal one is fine: a holder may write many times
			return errors.New("refused")
		}
		balance, largest = value, token
		return nil
	}

	paused, err := ours.Lock(ctx, "account")
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println("first holder:", write(100, paused.Token()))

	// An operator takes the key away, or the TTL runs out, and another goes on.
	if _, err := theirs.ForceUnlock(ctx, "account", 0); err != nil {
		log.Print(err)
		return
	}
	next, err := theirs.Lock(ctx, "account")
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println("next holder:", write(50, next.Token()))
	fmt.Println("first holder, late:", write(120, paused.Token()))
	fmt.Println("its unlock says:", errors.Is(paused.Unlock(ctx), asynclock.ErrForced))
	fmt.Println("balance:", balance, next.Unlock(ctx))
	// Output:
	// first holder: <nil>
	// next holder: <nil>
	// first holder, late: refused
	// its unlock says: true
	// balance: 50 <nil>
}

// A lease may be passed on, and unlocked by whoever has it in the end.
func ExampleLease_Unlock() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	lease, err := locks.Lock(ctx, "upload")
	if err != nil {
		log.Print(err)
		return
	}
	done := make(chan error)
	go func() { // finishes what we have begun
		done <- lease.Unlock(ctx)
	}()
	fmt.Println("unlocked:", <-done)
	fmt.Println("again:", lease.Unlock(ctx)) // the first answer
	fmt.Println("why it ended:", lease.Err())
	// Output:
	// unlocked: <nil>
	// again: <nil>
	// why it ended: asynclock: unlocked
}

// Unlocks that nobody waits for one by one.
func ExampleLease_UnlockChan() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	var answers []<-chan error
	for _, key := range []string{"seat:1", "seat:2", "seat:3"} {
		lease, err := locks.Lock(ctx, key)
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println("booked", key)
		answers = append(answers, lease.UnlockChan(ctx)) // on with the next one
	}
	for _, answer := range answers {
		if err := <-answer; err != nil {
			log.Print(err)
		}
	}
	// Output:
	// booked seat:1
	// booked seat:2
	// booked seat:3
}

// A holder may ask how long it may go on, and hears when it may not.
func ExampleLease_Done() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	lease, err := locks.Lock(ctx, "leader", asynclock.WithMaxHold(100*time.Millisecond))
	if err != nil {
		log.Print(err)
		return
	}
	defer lease.Unlock(ctx)
	fmt.Println("for another hour:", lease.Valid(time.Hour))
	select {
	case <-lease.Done():
		fmt.Println(lease.Err())
	case <-time.After(time.Minute):
	}
	// Output:
	// for another hour: false
	// asynclock: lease lost: maximum hold reached
}

// Operators can inspect a key and take it by force.
func ExampleClient_ForceUnlock() {
	ctx := context.Background()
	store := memstore.New()
	batch, err := asynclock.New(store, asynclock.WithDescription("batch on host-3"))
	if err != nil {
		log.Fatal(err)
	}
	defer batch.Close(ctx)
	operator, err := asynclock.New(store)
	if err != nil {
		log.Fatal(err)
	}
	defer operator.Close(ctx)

	stuck, err := batch.Lock(ctx, "nightly")
	if err != nil {
		log.Print(err)
		return
	}
	info, err := operator.Inspect(ctx, "nightly")
	if err != nil {
		log.Print(err)
		return
	}
	fmt.Println("held:", info.Held, "by", info.Holder)

	// The token says who is meant, in case the key goes to somebody else in the meantime.
	held, err := operator.ForceUnlock(ctx, "nightly", info.Token)
	fmt.Println("taken:", held, err)
	<-stuck.Done()
	fmt.Println("lost:", errors.Is(stuck.Err(), asynclock.ErrLost))
	// Output:
	// held: true by batch on host-3
	// taken: true <nil>
	// lost: true
}

// List finds what is held or waited for.
func ExampleClient_List() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New(), asynclock.WithDescription("the shop"))
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	for _, key := range []string{"order:42", "invoice:7"} {
		lease, err := locks.Lock(ctx, key)
		if err != nil {
			log.Print(err)
			return
		}
		defer lease.Unlock(ctx)
	}
	for info, err := range locks.List(ctx, "order:") {
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println(info.Key, "is held by", info.Holder)
	}
	// Output:
	// order:42 is held by the shop
}

// A job that all processes try to run, and that runs once per day: the key stays
// taken for most of the interval, however soon the job is done.
func ExampleWithMinHold() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	runOnce := func(process string) {
		lease, err := locks.TryLock(ctx, "daily report", asynclock.WithMinHold(23*time.Hour))
		if errors.Is(err, asynclock.ErrHeld) {
			fmt.Println(process, "leaves it to another")
			return
		}
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println(process, "reports")
		lease.Unlock(ctx)
	}
	runOnce("process 1")
	runOnce("process 2")
	// Output:
	// process 1 reports
	// process 2 leaves it to another
}
