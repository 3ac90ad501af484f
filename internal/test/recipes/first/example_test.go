// SPDX-License-Identifier: Apache-2.0

// The program of README.md. Package acceptance runs it, with a server.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

func main() {
	ctx := context.Background()
	store, err := redisstore.OpenURL("redis://127.0.0.1:6379")
	if err != nil {
		log.Fatal(err)
	}
	locks, err := asynclock.New(store, asynclock.WithOwnedStore())
	if err != nil {
		log.Fatal(err)
	}
	err = locks.WithLock(ctx, "order:42", func(ctx context.Context, lease *asynclock.Lease) error {
		fmt.Println("order:42 is ours, with token", lease.Token())
		return ctx.Err() // ctx ends if the lease is lost: pass it to your work
	})
	if err := errors.Join(err, locks.Close(ctx)); err != nil {
		log.Fatal(err)
	}
}
