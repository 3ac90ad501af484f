// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"context"
	"iter"

	"github.com/redis/rueidis"
)

// ScanPage is how many of its keys, matching or not, a server looks at for a page.
const ScanPage = 500

// Pages scans the names of all keys that match a pattern, one primary after the
// other, and yields them page by page, of which some are empty. A name may come
// twice; that of a key that moves to another node meanwhile may be missed. An error,
// as rueidis has it, is the last.
func Pages(ctx context.Context, client rueidis.Client, pattern string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		nodes, err := primaries(ctx, client)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, node := range nodes {
			for cursor := uint64(0); ; {
				page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(pattern).Count(ScanPage).Build()).AsScanEntry()
				if !yield(page.Elements, err) || err != nil {
					return
				}
				if cursor = page.Cursor; cursor == 0 {
					break
				}
			}
		}
	}
}

// primaries returns the nodes that have keys of their own, and those that won't
// say: scanning a replica finds some keys twice, which is allowed.
func primaries(ctx context.Context, client rueidis.Client) ([]rueidis.Client, error) {
	if client.Mode() != rueidis.ClientModeCluster {
		return []rueidis.Client{client}, nil
	}
	var found []rueidis.Client
	for _, node := range client.Nodes() {
		role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
		if _, refused := rueidis.IsRedisErr(err); err != nil && !refused {
			return nil, err
		}
		if len(role) > 0 {
			if name, _ := role[0].ToString(); name != "master" {
				continue
			}
		}
		found = append(found, node)
	}
	return found, nil
}
