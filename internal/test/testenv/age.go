// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/asynclock/asynclock-go/internal/test/servers"
)

// oldEnough is when a server can't have lost, by a restart, what is still in use:
// before, locks are not granted (see WithFailoverGrace in package redisstore).
const oldEnough = 17 // seconds: a TTL, and two for rounding

// awaitAge waits until every Redis server grants locks at once.
func awaitAge(ctx context.Context, all []*target) error {
	for _, t := range all {
		for _, r := range t.nodes {
			err := servers.Await(ctx, r.Name, func(ctx context.Context) error { return isOldEnough(ctx, r) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func isOldEnough(ctx context.Context, r *servers.Redis) error {
	if err := r.Died(); err != nil {
		return err
	}
	facts, err := r.Facts(ctx, "INFO", "server")
	if err != nil {
		return err
	}
	age, err := strconv.Atoi(facts["uptime_in_seconds"])
	if err == nil && age < oldEnough {
		err = fmt.Errorf("it has run for %v, not for %v", time.Duration(age)*time.Second, oldEnough*time.Second)
	}
	return err
}
