// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"cmp"
	"context"
	"iter"

	"github.com/redis/rueidis"
)

// ScanPage is how many of its keys, matching or not, a server looks at for a page.
const ScanPage = 500

// Pages scans the names of all keys that match a pattern, one primary after the
// other, and yields them page by page, of which some are empty. A name may come
// twice; that of a key that moves to another node meanwhile may be missed. If a
// primary can't be reached, an error, as rueidis has it, comes last, behind the keys of
// the others.
func Pages(ctx context.Context, client rueidis.Client, pattern string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		nodes, err := Primaries(ctx, client)
		for _, node := range nodes {
			more, failed := scan(ctx, node, pattern, yield)
			if !more {
				return
			}
			err = cmp.Or(err, failed)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// scan yields the pages of one node. It reports whether the caller wants more.
func scan(ctx context.Context, node rueidis.Client, pattern string, yield func([]string, error) bool) (more bool, err error) {
	for cursor := uint64(0); ; {
		page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(pattern).Count(ScanPage).Build()).AsScanEntry()
		if err != nil {
			return true, err
		}
		if !yield(page.Elements, nil) {
			return false, nil
		}
		if cursor = page.Cursor; cursor == 0 {
			return true, nil
		}
	}
}
