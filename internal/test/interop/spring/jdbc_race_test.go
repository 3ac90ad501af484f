// SPDX-License-Identifier: Apache-2.0

package spring

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
)

// Java takes a key by two statements of one transaction. While the transaction is under way,
// the key's row exists but Go can't see it yet, or Go sees its old version. A Go client that
// comes then waits for the transaction to end, and respects its result. (This test uses a
// transaction of its own, since nothing can halt Java's between its statements.)
func TestJDBCJavaIsAboutToTakeIt(t *testing.T) {
	t.Parallel()
	const key, javaKey = "my-lock", "eda23b8c-64b2-3f01-8c10-660455d15168"
	for name, how := range map[string]struct{ before, during string }{
		"a free key": {
			during: "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES ('" + javaKey + "', 'DEFAULT', 'java', NOW, LATER)",
		},
		"a key whose holder has expired": {
			before: "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CLIENT_ID, CREATED_DATE, EXPIRED_AFTER) VALUES ('" + javaKey + "', 'DEFAULT', 'old', '2000-01-01', '2000-01-01')",
			during: "UPDATE INT_LOCK SET CLIENT_ID = 'java', EXPIRED_AFTER = LATER",
		},
	} {
		for _, k := range []kind{postgres, mariaDB} {
			t.Run(name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				b := newTable(t, k, since7)
				client := b.client(t)
				spell := strings.NewReplacer("INT_", b.prefix, "NOW", k.utc, "LATER", k.utc+" + INTERVAL '1' HOUR").Replace
				if how.before != "" {
					b.exec(t, spell(how.before))
				}
				java, err := b.db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = java.Rollback() }() // it is over already, unless the test has failed
				if _, err := java.ExecContext(t.Context(), spell(how.during)); err != nil {
					t.Fatal(err)
				}

				tried := make(chan error, 1)
				go func() { // ends with the transaction
					for {
						_, err := client.TryLock(t.Context(), key)
						if !errors.Is(err, asynclock.ErrUnreachable) { // a try waits for a locked row for some 0.3 s only
							tried <- err
							return
						}
					}
				}()
				select { // were Go slow to come, it would only see at once what Java has done
				case err := <-tried:
					t.Fatalf("TryLock while Java is at it: got %v, want no answer yet", err)
				case <-time.After(short / 10):
				}
				if err := java.Commit(); err != nil {
					t.Fatal(err)
				}
				select {
				case err = <-tried:
				case <-time.After(patience):
					t.Fatalf("TryLock after Java was done: no answer in %v", patience)
				}
				if !errors.Is(err, asynclock.ErrHeld) {
					t.Errorf("TryLock after Java was done: got %v, want ErrHeld", err)
				}
			})
		}
	}
}
