// SPDX-License-Identifier: Apache-2.0

package fences

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/fence/fenceredis"
	"github.com/asynclock/asynclock-go/internal/test/kit"
	"github.com/asynclock/asynclock-go/internal/test/kit/redistest"
)

// clients are the client libraries that fenceredis takes. Each opens one for a URL.
var clients = map[string]func(url string) (fenceredis.Client, func(), error){
	"rueidis": func(url string) (fenceredis.Client, func(), error) {
		option, err := rueidis.ParseURL(url)
		if err != nil {
			return fenceredis.Client{}, nil, err
		}
		c, err := rueidis.NewClient(option)
		if err != nil {
			return fenceredis.Client{}, nil, err
		}
		return fenceredis.Rueidis(c), c.Close, nil
	},
	"go-redis": func(url string) (fenceredis.Client, func(), error) {
		var c goredis.UniversalClient
		if strings.Contains(url, "addr=") { // of a Cluster
			option, err := goredis.ParseClusterURL(url)
			if err != nil {
				return fenceredis.Client{}, nil, err
			}
			c = goredis.NewClusterClient(option)
		} else {
			option, err := goredis.ParseURL(url)
			if err != nil {
				return fenceredis.Client{}, nil, err
			}
			c = goredis.NewClient(option)
		}
		return fenceredis.GoRedis(c), func() { _ = c.Close() }, nil
	},
}

func init() {
	for name := range clients {
		kinds["fenceredis, "+name] = kind{
			prepare: func(t *testing.T) string {
				t.Helper()
				return kit.Require(t, "ASYNCLOCK_REDIS_URL") + " " + uuid.NewString()
			},
			open: func(_ context.Context, place string) (resource, error) { return openRedis(name, place) },
		}
	}
}

func openRedis(name, place string) (resource, error) {
	url, key, _ := strings.Cut(place, " ")
	c, closeClient, err := clients[name](url)
	if err != nil {
		return resource{}, err
	}
	fences, err := fenceredis.New(c, fenceredis.WithResource(key))
	return resource{
		write: func(ctx context.Context, h fence.Holder, value string) error {
			_, err := fences.Do(ctx, h, fenceredis.Command{"SET", key, value, "EX", "60"})
			return err
		},
		read: func(ctx context.Context) (string, error) {
			reader, err := fence.NewStamp("reader", 1)
			if err != nil {
				return "", err
			}
			replies, err := fences.Do(ctx, reader, fenceredis.Command{"GET", key})
			return fmt.Sprint(replies...), err
		},
		close: closeClient,
	}, err
}

// On a Cluster and by either client: data with the tag of the lock's key is written, and other data is
// refused by the server.
func TestRedisCluster(t *testing.T) {
	t.Parallel()
	url := kit.Require(t, "ASYNCLOCK_CLUSTER_URL")
	for name, open := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, closeClient, err := open(url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(closeClient)
			fences, err := fenceredis.New(c)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 8 { // on several nodes
				key := fmt.Sprintf("order:%d:%s", i, uuid.NewString())
				holder := func(token int64) fence.Holder {
					s, err := fence.NewStamp(key, token)
					if err != nil {
						t.Fatal(err)
					}
					return s
				}
				write := fenceredis.Command{"SET", "state:{" + key + "}", "paid", "EX", "60"}
				if _, err := fences.Do(t.Context(), holder(7), write); err != nil {
					t.Errorf("got %v, want no error", err)
				}
				if _, err := fences.Do(t.Context(), holder(6), write); !errors.Is(err, fence.ErrStale) {
					t.Errorf("got %v, want ErrStale", err)
				}
				_, err := fences.Do(t.Context(), holder(7), write, fenceredis.Command{"SET", "elsewhere" + key, "paid", "EX", "60"})
				if err == nil || !strings.Contains(err.Error(), "CROSSSLOT") {
					t.Errorf("another slot: got %v, want CROSSSLOT", err)
				}
			}
		})
	}
}

// A ring sends a script to the server of its first key, and reads the others elsewhere. A pipeline would have sent nothing.
func TestClientsThatCanHaveNoFenceAreRefused(t *testing.T) {
	t.Parallel()
	ring, single := goredis.NewRing(new(goredis.RingOptions)), goredis.NewClient(new(goredis.Options))
	t.Cleanup(func() { _, _ = ring.Close(), single.Close() })
	for name, c := range map[string]fenceredis.Client{
		"ring":          fenceredis.GoRedis(ring),
		"hidden ring":   fenceredis.GoRedis(goredis.UniversalClient(ring)),
		"embedded ring": fenceredis.GoRedis(struct{ *goredis.Ring }{ring}),
		"pipeline":      fenceredis.GoRedis(single.Pipeline()),
		"MULTI":         fenceredis.GoRedis(single.TxPipeline()),
	} {
		if _, err := fenceredis.New(c); !errors.Is(err, fence.ErrInvalidOption) {
			t.Errorf("%s: got %v, want ErrInvalidOption", name, err)
		}
	}
	if _, err := fenceredis.New(fenceredis.GoRedis(single)); err != nil {
		t.Errorf("a single server: got %v, want no error", err)
	}
}

// leftover are goroutines that clients leave behind.
var leftover = redistest.Leftover()
