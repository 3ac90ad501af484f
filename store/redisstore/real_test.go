// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"os"
	"testing"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/redisstore"
	"github.com/asynclock/asynclock-go/store/storetest"
)

// serverOption reads where a server is from the environment. Without it the test
// is skipped, or fails where servers are required.
func serverOption(t *testing.T, variable string) rueidis.ClientOption {
	t.Helper()
	url := os.Getenv(variable)
	if url == "" {
		if os.Getenv("ASYNCLOCK_REQUIRE") == "1" {
			t.Fatalf("%s is not set, and ASYNCLOCK_REQUIRE is", variable)
		}
		t.Skipf("%s is not set: not tested against a real server", variable)
	}
	option, err := rueidis.ParseURL(url)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return option
}

// ownPrefix keeps a test from what others leave behind on the same server.
func ownPrefix() redisstore.Option {
	return redisstore.WithPrefix("test-" + uuid.NewString())
}

func TestConformanceOnRealServers(t *testing.T) {
	for _, variable := range []string{"ASYNCLOCK_REDIS_URL", "ASYNCLOCK_SENTINEL_URL", "ASYNCLOCK_CLUSTER_URL"} {
		t.Run(variable, func(t *testing.T) {
			option := serverOption(t, variable)
			storetest.Run(t, func(t *testing.T) asynclock.Store { return open(t, option, ownPrefix()) })
		})
	}
}
