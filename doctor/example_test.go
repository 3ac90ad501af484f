// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/doctor"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A program looks at its store before it begins, and goes on unless locks don't work.
func ExampleCheck() {
	ctx := context.Background()
	st := memstore.New() // or that of redisstore, for example

	findings, err := doctor.Check(ctx, st, doctor.WithTTL(30*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range findings {
		fmt.Println(f.Verdict, f.Check)
	}
	fmt.Println("fit for locks:", doctor.Worst(findings) < doctor.Fail)
	// Output:
	// ok answers
	// ok lock
	// ok messages
	// ok locks
	// fit for locks: true
}

// An operator wants to know why a job does not begin. The lock is not it.
func ExampleWhy() {
	st := memstore.New() // or that of redisstore, for example

	findings, err := doctor.Why(context.Background(), st, "report")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range findings {
		fmt.Printf("%v %s: %s\n", f.Verdict, f.Check, f.Fact)
	}
	// Output: ok key: Nobody holds it, and nobody waits for it.
}
