// SPDX-License-Identifier: Apache-2.0

package cronlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/cronlock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A report of each minute, on one host. The job is run by hand here, twice.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	locks, err := asynclock.New(memstore.New()) // in production: redisstore
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	locker, err := cronlock.New(ctx, locks, cron.DefaultLogger)
	if err != nil {
		log.Fatal(err)
	}
	report, err := locker.Job("report", func(_ context.Context, lease *asynclock.Lease) error {
		fmt.Println("writes the report, with token", lease.Token())
		return nil
	}, asynclock.WithMinHold(50*time.Second))
	if err != nil {
		log.Fatal(err)
	}

	crontab := cron.New()
	if _, err := crontab.AddJob("* * * * *", report); err != nil {
		log.Fatal(err)
	}
	crontab.Start()
	defer crontab.Stop()

	report.Run()
	report.Run() // as another host would within the minute
	// Output: writes the report, with token 1
}
