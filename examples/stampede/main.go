// SPDX-License-Identifier: Apache-2.0

// Command stampede fills a cache once, although sixty requests in three processes find it empty at the same
// time.
//
// Use it where a value is expensive to make, and where it does no harm to make it twice. The lock saves work.
// It is not what makes the value right. A request that finds the key held does not queue for it, because its turn
// would only tell it that the value is there. It looks into the cache again instead.
//
// If Redis can't be reached, or grants nothing yet because it was started lately, each process renders once, under a
// lock of its own.
//
// If the lease is lost, the context ends the rendering, and another request renders. A rendering that goes on
// regardless may end after the next one. So the cache refuses a page whose token is older than the last.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/fence"
	"github.com/asynclock/asynclock-go/store/memstore"
	"github.com/asynclock/asynclock-go/store/redisstore"
)

const (
	processes = 3
	requests  = 20 // of each process
)

func main() {
	url := flag.String("redis", "", "where the locks are, as redis://localhost:6379; without it: in this process")
	flag.Parse()
	if err := run(context.Background(), connector(*url)); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, connect func() (*asynclock.Client, error)) error {
	var pages cache
	var rendered atomic.Int32
	render := func(ctx context.Context) (string, error) {
		rendered.Add(1)
		select {
		case <-time.After(50 * time.Millisecond): // it takes its time
			return "welcome", nil
		case <-ctx.Done(): // the request has ended, or the lease
			return "", context.Cause(ctx)
		}
	}
	answers := make(chan error, processes*requests)
	for range processes {
		locks, err := connect()
		if err != nil {
			return err
		}
		defer locks.Close(ctx)
		own, err := asynclock.New(memstore.New())
		if err != nil {
			return err
		}
		defer own.Close(ctx)
		p := process{locks, own, &pages, render}
		for range requests {
			go func() {
				page, err := p.cached(ctx, "home")
				if err == nil && page != "welcome" {
					err = fmt.Errorf("got the page %q", page)
				}
				answers <- err
			}()
		}
	}
	served, failed := 0, error(nil)
	for range processes * requests {
		if err := <-answers; err != nil {
			failed = errors.Join(failed, err)
		} else {
			served++
		}
	}
	fmt.Printf("requests that got the page: %d\n", served)
	fmt.Printf("times that it was rendered: %d\n", rendered.Load())
	return failed
}

// A process serves pages.
type process struct {
	locks  *asynclock.Client // of all processes
	own    *asynclock.Client // of this one
	pages  *cache
	render func(context.Context) (string, error)
}

// cached returns a page. It renders the page if the cache has none and nobody else is rendering it.
func (p *process) cached(ctx context.Context, name string) (string, error) {
	for {
		if page, ok := p.pages.get(name); ok {
			return page, nil
		}
		page, err := asynclock.Do(ctx, p.locks, "render:"+name, p.fill(name, p.pages.put), asynclock.WithWait(0))
		if errors.Is(err, asynclock.ErrUnreachable) { // no locks, or none yet: some renderings are better than no page
			page, err = asynclock.Do(ctx, p.own, "render:"+name, p.fill(name, p.pages.add))
		}
		if !errors.Is(err, asynclock.ErrHeld) && !errors.Is(err, asynclock.ErrLost) && !errors.Is(err, fence.ErrStale) {
			return page, err
		}
		select { // another renders the page
		case <-time.After(20*time.Millisecond + rand.N(10*time.Millisecond)):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// A keeper keeps a page.
type keeper func(ctx context.Context, lease fence.Holder, name, page string) error

// fill returns what renders a page under a lock, and keeps it.
func (p *process) fill(name string, keep keeper) func(context.Context, *asynclock.Lease) (string, error) {
	return func(ctx context.Context, lease *asynclock.Lease) (string, error) {
		if page, ok := p.pages.get(name); ok { // another was quicker
			return page, nil
		}
		page, err := p.render(ctx)
		if err != nil {
			return "", err
		}
		return page, keep(ctx, lease, name, page)
	}
}

// A cache stands for yours, which all processes share.
type cache struct {
	gate  fence.Gate
	pages sync.Map
}

func (c *cache) get(name string) (string, bool) {
	page, ok := c.pages.Load(name)
	text, _ := page.(string)
	return text, ok
}

// put keeps a page, unless a later holder has put one.
func (c *cache) put(ctx context.Context, lease fence.Holder, name, page string) error {
	return c.gate.Do(ctx, lease, func() error {
		c.pages.Store(name, page)
		return nil
	})
}

// add keeps a page if there is none. A token of one process says nothing to the others.
func (c *cache) add(_ context.Context, _ fence.Holder, name, page string) error {
	c.pages.LoadOrStore(name, page)
	return nil
}

// connector returns what makes the client of a process: of the Redis at url, or, without one, of a store in
// memory, which all clients share as they would a server.
func connector(url string) func() (*asynclock.Client, error) {
	if url == "" {
		store := memstore.New()
		return func() (*asynclock.Client, error) { return asynclock.New(store) }
	}
	return func() (*asynclock.Client, error) {
		store, err := redisstore.OpenURL(url)
		if err != nil {
			return nil, err
		}
		return asynclock.New(store, asynclock.WithOwnedStore())
	}
}
