// SPDX-License-Identifier: Apache-2.0

package riverlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/riverlock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// One payment of an account at a time. The workers are called by hand here; river.NewClient is not shown.
func ExamplePerKey() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New()) // in production: redisstore
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	accountOf := func(job *rivertype.JobRow) string {
		if job.Kind != "payment" {
			return "" // no lock
		}
		return "account:" + job.Tags[0]
	}
	perAccount, err := riverlock.PerKey(locks, accountOf, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	_ = river.Config{Middleware: []rivertype.Middleware{perAccount}} // and the rest

	job := &rivertype.JobRow{Kind: "payment", Tags: []string{"acme"}}
	err = perAccount.Work(ctx, job, func(context.Context) error {
		fmt.Println("works the first")
		second := perAccount.Work(ctx, job, func(context.Context) error { return nil })
		fmt.Println("the second:", second)
		return nil
	})
	fmt.Println("the first:", err)
	// Output:
	// works the first
	// the second: JobSnoozeError: 10s
	// the first: <nil>
}
