// SPDX-License-Identifier: Apache-2.0

package certmagiclock_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/caddyserver/certmagic"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/contrib/certmagiclock"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// Certificates stay where they are, and their locks are asynclock's.
func Example() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New()) // in production: redisstore
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	dir, err := os.MkdirTemp("", "certificates")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	storage, err := certmagiclock.Wrap(&certmagic.FileStorage{Path: dir}, locks, "certmagic:")
	if err != nil {
		log.Fatal(err)
	}
	certmagic.Default.Storage = storage // certmagic.HTTPS and the others use it from here on

	if err := storage.Lock(ctx, "issue_cert_example.com"); err != nil { // as certmagic does
		log.Fatal(err)
	}
	held, err := storage.TryLock(ctx, "issue_cert_example.com")
	fmt.Println("another has it:", held, err)
	fmt.Println("unlocked:", storage.Unlock(ctx, "issue_cert_example.com"))
	// Output:
	// another has it: false <nil>
	// unlocked: <nil>
}
