// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// Calls that wait for a silent node of a Cluster take no places of calls to other nodes. Their slots
// are in other ranges.
func TestCallsToASilentNodeTakeNoPlacesOfOthers(t *testing.T) {
	t.Parallel()
	client, _, _ := twoNodes(t)
	conn, err := Share(client)
	if err != nil {
		t.Fatal(err)
	}
	get := func(key string) rueidis.Completed { return client.B().Get().Key(key).Build() }
	const silent, other = "foo", "bar" // of slots 12182 and 5061
	taken := conn.places.of(get(silent))
	for range cap(taken) {
		taken <- struct{}{}
	}
	ask := func(command rueidis.Completed, patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return conn.Do(ctx, command).Error()
	}
	if err := ask(get(silent), 50*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a place: got %v, want DeadlineExceeded", err)
	}
	for name, command := range map[string]rueidis.Completed{"another slot": get(other), "no slot": client.B().Ping().Build()} {
		if conn.places.of(command) == taken {
			t.Errorf("%s: got the places of the silent node's slot, want others", name)
		}
	}
	<-taken
	if err := ask(get(silent), time.Minute); !errors.Is(err, rueidis.ErrNoSlot) { // the two nodes have other slots
		t.Errorf("with a place: got %v, want the call to be made, which ends with ErrNoSlot", err)
	}
}
