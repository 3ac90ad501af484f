// SPDX-License-Identifier: Apache-2.0

// Package redistest is what the tests of every store in Redis need: servers, that is
// where they are, one in memory whose clock a test sets, and processes that end with
// the test; and clients of a store on them.
package redistest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/internal/test/kit"
)

// Option reads from the environment where a server is. Without that the test is
// skipped, or fails where servers are required.
func Option(t testing.TB, variable string) rueidis.ClientOption {
	t.Helper()
	option, err := rueidis.ParseURL(kit.Require(t, variable))
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return option
}

// Ask sends a command as redis-cli would and returns the reply as text, which is
// empty for nil.
func Ask(client rueidis.Client, words ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	value, err := client.Do(ctx, client.B().Arbitrary(words...).Build()).ToAny()
	if rueidis.IsRedisNil(err) {
		return "", nil
	}
	return fmt.Sprint(value), err
}
