// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/test/chaos/history"
)

// dismiss asks the workers to stop, and tells of those that don't.
func (r *run) dismiss() {
	for _, s := range r.seats {
		_ = s.stdin.Close()
	}
	patience, cancel := context.WithTimeout(context.Background(), r.limits().Turns+30*time.Second)
	defer cancel()
	r.awaitWorkers(patience)
}

// awaitWorkers waits for the ends of all workers. Those that have not ended with ctx are killed.
func (r *run) awaitWorkers(ctx context.Context) {
	for _, s := range r.seats {
		select {
		case <-s.process.Ended():
			if err := s.process.Err(); err != nil {
				r.file.Add(history.Record{Kind: history.Left, Whom: s.name, Error: fmt.Sprintf("%s ended badly: %v", s.name, err)})
			}
		case <-ctx.Done():
			r.file.Add(history.Record{Kind: history.Left, Whom: s.name, Error: s.name + " does not stop"})
			_ = s.process.Child.Signal(syscall.SIGQUIT) // it prints its goroutines
			time.Sleep(time.Second)
			_ = s.process.Kill()
		}
	}
}

// allKeys lists the keys that callers take, and those of all who take part besides.
func (r *run) allKeys() []string {
	all := slices.Clone(r.Keys)
	for _, some := range []struct {
		kind string
		n    int
	}{{"r", sharedKeys}, {"p", sharedKeys}, {"m", severalKeys}, {"e", elections}} {
		for i := range some.n {
			all = append(all, fmt.Sprint(some.kind, i+1))
		}
	}
	for _, key := range jobKeys() {
		if !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all
}

// sweep takes each key once more and then looks what is left in the server. A
// waiter that died leaves its entry in the queue until the next one who comes
// finds it dead; so somebody comes.
func (r *run) sweep(ctx context.Context) error {
	left := func(key, what string) { r.file.Add(history.Record{Kind: history.Left, Key: key, Error: what}) }
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	store, err := overAll(r.store.url, func(url string) (*workersStore, error) {
		option, err := rueidis.ParseURL(url)
		if err != nil {
			return nil, err
		}
		return openStore(option, graceOf(r.store.url, r.TTLs))
	})
	if err != nil {
		return err
	}
	defer store.close()
	locks, err := asynclock.New(store, asynclock.WithTTL(r.longestTTL()))
	if err != nil {
		return err
	}
	for _, key := range r.allKeys() {
		lease, err := locks.Lock(ctx, key)
		if err == nil {
			err = lease.Unlock(ctx)
		}
		if err != nil {
			left(key, "it can't be had when all is over: "+err.Error())
		}
	}
	if err := locks.Close(ctx); err != nil {
		left("", err.Error())
	}
	store.close()
	return r.inspect(ctx, left)
}

// inspect looks for what must not be left in the server: holders and waiters,
// anything without a TTL, subscriptions. Counters, vacancies, epochs, causes of graces, notes and the
// names of withdrawn owners expire by themselves.
func (r *run) inspect(ctx context.Context, left func(key, what string)) error {
	var found []string
	for range 100 { // what has just been given back is on its way
		var err error
		if found, err = r.store.remains(ctx); err != nil || len(found) == 0 {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, what := range found {
		left("", "left in the server: "+what)
	}
	return nil
}

// remains lists what of ours is in the servers, except what expires by itself.
func (s *site) remains(ctx context.Context) ([]string, error) {
	found, err := s.channels(ctx)
	if err != nil {
		return nil, err
	}
	names, err := s.names(ctx)
	if err != nil {
		return nil, err
	}
	for node, some := range names {
		for _, name := range some {
			ttl, err := node.Text(ctx, "PTTL", name)
			if err != nil {
				return nil, err
			}
			expires := strings.ContainsRune("fxeng", rune(name[len(name)-1]))
			if strings.HasSuffix(name, ":l") { // a free key's has the last token, and nothing else
				value, err := node.Text(ctx, "GET", name)
				if err != nil {
					return nil, err
				}
				_, err = strconv.ParseUint(value, 10, 64)
				expires = err == nil
			}
			if !expires || ttl == "-1" {
				found = append(found, name+", TTL "+ttl+" ms")
			}
		}
	}
	return found, nil
}

// collect puts the resources' journals into the history.
func (r *run) collect(ctx context.Context) error {
	client, err := r.vault.Client()
	if err != nil {
		return err
	}
	resources := []resource{vault{client: client}, ledger{r.ledgerDir()}}
	if r.rows != nil {
		rows, err := openRow(ctx, r.rows.url)
		if err != nil {
			return err
		}
		defer rows.close()
		resources = append(resources, rows)
	}
	for _, res := range resources {
		for _, key := range r.allKeys() {
			writes, err := res.journal(ctx, key)
			if err != nil {
				return err
			}
			for _, w := range writes {
				r.file.Add(w)
			}
		}
	}
	return nil
}
