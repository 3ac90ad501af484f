// SPDX-License-Identifier: Apache-2.0

package fenceredis_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fenceredis"
)

// A holder overslept. The next one has written since, so the sleeper's write is refused.
func ExampleFence_Do() {
	server, err := miniredis.Run() // yours is there already
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	fences, err := fenceredis.New(fenceredis.Rueidis(client))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	save := func(lease fence.Holder, state string) error { // a lease is a Holder
		_, err := fences.Do(
			ctx, lease,
			fenceredis.Command{"SET", "state:{order:42}", state},
			fenceredis.Command{"RPUSH", "history:{order:42}", state},
		)
		return err
	}

	sleeper, _ := fence.NewStamp("order:42", 1001)
	next, _ := fence.NewStamp("order:42", 1002)
	fmt.Println("the first holder:", save(sleeper, "paid"))
	fmt.Println("the next holder:", save(next, "shipped"))
	fmt.Println("the sleeper is refused:", errors.Is(save(sleeper, "cancelled"), fence.ErrStale))
	// Output:
	// the first holder: <nil>
	// the next holder: <nil>
	// the sleeper is refused: true
}
