// SPDX-License-Identifier: Apache-2.0

package zkstore_test

import (
	"context"
	"errors"
	"log"
	"strings"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/zkstore"
)

// Services in Java read and write the catalog under Curator's InterProcessReadWriteLock, and this one
// takes part. All other keys are mutexes, as in Java.
func ExampleWithReadWriteKeys() {
	store, err := zkstore.Open([]string{"zk1:2181", "zk2:2181", "zk3:2181"},
		zkstore.WithRoot("/shop"),
		zkstore.WithReadWriteKeys(func(key string) bool { return strings.HasPrefix(key, "catalog/") }))
	if err != nil {
		log.Fatal(err)
	}
	locks, err := asynclock.New(store, asynclock.WithOwnedStore())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	err = locks.WithRLock(ctx, "catalog/books", func(context.Context, *asynclock.Lease) error {
		return nil // others may read, too
	})
	if err := errors.Join(err, locks.Close(ctx)); err != nil {
		log.Fatal(err)
	}
}
