// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/store/redisstore"
	"github.com/asynclock/asynclock-go/store/storetest"
)

func TestConformanceOnMiniredis(t *testing.T) {
	storetest.Run(t, func(t *testing.T) asynclock.Store {
		server := miniredis.RunT(t)
		server.ClockTTL(true)
		return open(t, rueidis.ClientOption{InitAddress: []string{server.Addr()}})
	})
}

func open(t *testing.T, option rueidis.ClientOption, opts ...redisstore.Option) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open(option, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}
