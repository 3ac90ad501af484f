// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
	"github.com/asynclock/asynclock-go/store"
)

// A pipelineHook of an application is called for each pipeline, before it is sent.
type pipelineHook func([]redis.Cmder)

func (pipelineHook) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (pipelineHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (h pipelineHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, sent []redis.Cmder) error {
		h(sent)
		return next(ctx, sent)
	}
}

// A hook that panics does so on a goroutine of ours, where nobody else could recover it.
func TestAPanicOfAHookIsAnError(t *testing.T) {
	t.Parallel()
	hook := pipelineHook(func(sent []redis.Cmder) {
		if sent[0].Name() == "evalsha" { // not what a new connection begins with, for that is another goroutine
			panic(errors.New("MOVED 1 127.0.0.1:1")) // which says nothing of the call
		}
	})
	_, single := startWith(t, func(*redis.Options) {})
	single.AddHook(hook)
	cluster := redis.NewUniversalClient(universal(redistest.Option(t, "ASYNCLOCK_CLUSTER_URL"))).(*redis.ClusterClient)
	defer cluster.Close()
	cluster.OnNewNode(func(node *redis.Client) { node.AddHook(hook) })
	for _, client := range []redis.UniversalClient{single, cluster} {
		got := redistest.Join(t, newStore(t, client), store.EventResync, store.EventDisconnected).Acquire(redistest.Attempt("key", "o")).Err
		if !errors.Is(got, store.ErrOutcomeUnknown) || !strings.Contains(fmt.Sprint(got), "TestAPanicOfAHookIsAnError") {
			t.Errorf("%T: got %v, want ErrOutcomeUnknown, and where the panic was", client, got)
		}
	}
}

// A hook may read the words of a command for as long as it likes. A script that the server does not know is sent again
// with other words.
func TestWordsThatAHookHasSeenStay(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []redis.Cmder
	var names []any
	_, client := startWith(t, func(*redis.Options) {})
	client.AddHook(pipelineHook(func(sent []redis.Cmder) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range sent {
			seen, names = append(seen, c), append(names, c.Args()[0])
		}
	}))
	redistest.Join(t, newStore(t, client), store.EventResync, store.EventDisconnected).Acquire(redistest.Attempt("key", "o"))
	mu.Lock()
	defer mu.Unlock()
	for i, c := range seen {
		if got := c.Args()[0]; got != names[i] {
			t.Errorf("command %d was %v, and is %v now", i, names[i], got)
		}
	}
	if !slices.Contains(names, any("eval")) {
		t.Errorf("got the commands %v, want a script that the server did not know", names)
	}
}
