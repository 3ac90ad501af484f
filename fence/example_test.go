// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store/memstore"
)

// A holder overslept. The next one has written since, so the sleeper's write is refused.
func ExampleGate_Do() {
	ctx := context.Background()
	locks, err := asynclock.New(memstore.New())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)

	var gate fence.Gate
	state := "new"
	save := func(lease *asynclock.Lease, to string) error {
		return gate.Do(ctx, lease, func() error {
			state = to
			return nil
		})
	}

	sleeper, err := locks.Lock(ctx, "order:42")
	if err != nil {
		log.Fatal(err)
	}
	if _, err := locks.ForceUnlock(ctx, "order:42", 0); err != nil { // as if its TTL had passed
		log.Fatal(err)
	}
	next, err := locks.Lock(ctx, "order:42")
	if err != nil {
		log.Fatal(err)
	}
	defer next.Unlock(ctx)
	fmt.Println("the next holder:", save(next, "paid"))
	fmt.Println("the sleeper is refused:", errors.Is(save(sleeper, "cancelled"), fence.ErrStale))
	fmt.Println(state)
	// Output:
	// the next holder: <nil>
	// the sleeper is refused: true
	// paid
}

// A file outlives its process, so it has the token in it. The rename makes both one atomic step.
func ExampleGate_Do_file() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "order")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "order.json")

	type order struct {
		State string
		Token int64
	}
	save := func(gate *fence.Gate, lease fence.Holder, state string) error {
		return gate.Do(ctx, lease, func() error {
			text, err := json.Marshal(order{state, lease.Token()})
			if err != nil {
				return err
			}
			if err := os.WriteFile(name+".new", text, 0o600); err != nil {
				return err
			}
			return os.Rename(name+".new", name)
		})
	}
	stamp := func(token int64) fence.Stamp {
		s, err := fence.NewStamp("order:42", token)
		if err != nil {
			log.Fatal(err)
		}
		return s
	}
	fmt.Println(save(new(fence.Gate), stamp(1002), "paid"))

	// The process starts again. Its new Gate is shown what the file knows.
	var saved order
	text, err := os.ReadFile(name)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.Unmarshal(text, &saved); err != nil {
		log.Fatal(err)
	}
	var gate fence.Gate
	if err := gate.Do(ctx, stamp(saved.Token), func() error { return nil }); err != nil {
		log.Fatal(err)
	}
	fmt.Println(save(&gate, stamp(1001), "cancelled"))
	// Output:
	// <nil>
	// fence: stale fencing token: token 1001 of "order:42" is smaller than 1002
}

// A resource of your own that compares and swaps needs no other fence: keep the token beside the data.
func ExampleAdmit() {
	var saved struct { // as read, to be written back if nobody has changed it meanwhile
		state string
		token int64
	}
	saved.state, saved.token = "paid", 1002
	late, err := fence.NewStamp("order:42", 1001)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(fence.Admit(late, "orders", saved.token))
	// Output: fence: stale fencing token: token 1001 of "order:42" at "orders" is smaller than 1002
}

// A worker gets a key and a token in a message, and writes on behalf of the lease.
func ExampleNewStamp() {
	stamp, err := fence.NewStamp("order:42", 1795360368123456)
	fmt.Println(stamp.Key(), stamp.Token(), err)
	_, err = fence.NewStamp("order:42", 0)
	fmt.Println(errors.Is(err, fence.ErrInvalidToken))
	// Output:
	// order:42 1795360368123456 <nil>
	// true
}
