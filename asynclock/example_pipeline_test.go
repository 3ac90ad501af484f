// SPDX-License-Identifier: Apache-2.0

package asynclock_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A worker that does one short job after another, each under its own key, spends
// most of its time waiting for the store, twice for each job. With futures it
// waits once: the request for the next job's key goes out with the release of
// this one's, and only then does it wait for the answers. It never waits for a
// key while it holds one, so workers can't block each other, whatever their
// order.
//
// Asking for the next key before the work hides the other wait, too. Then a worker
// holds a key while it waits for another, and the next job's key is kept for as
// long as this job takes.
func ExampleClient_LockChan_pipeline() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	jobs := []string{"invoice:1", "invoice:2", "invoice:3"}
	next := locks.LockChan(ctx, jobs[0])
	var unlocked <-chan error // of the job before
	for i, job := range jobs {
		lease, err := (<-next).Lease()
		if err != nil {
			log.Print(job, ": ", err)
			return
		}
		if unlocked != nil {
			if err := <-unlocked; err != nil {
				log.Print(jobs[i-1], ": ", err) // its lease was lost, perhaps while it worked
			}
		}
		fmt.Println("sends", job)
		unlocked = lease.UnlockChan(ctx)
		if i+1 < len(jobs) {
			next = locks.LockChan(ctx, jobs[i+1])
		}
	}
	fmt.Println("last unlock:", <-unlocked)
	// Output:
	// sends invoice:1
	// sends invoice:2
	// sends invoice:3
	// last unlock: <nil>
}
