// SPDX-License-Identifier: Apache-2.0

package redisconn

import (
	"cmp"
	"context"
	"iter"

	"github.com/redis/rueidis"
)

// ScanPage is how many keys, matching or not, a server examines for a page.
const ScanPage = 500

// Pages scans the names of all keys that match a pattern, one primary after another, and yields
// them page by page. A page may be empty, and a name may come twice. A key that moves to another
// node meanwhile may be missed. If a primary can't be reached, an error comes last, after the keys
// of the others. It is rueidis' own error.
func Pages(ctx context.Context, conn *Conn, pattern string) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		nodes, err := Primaries(ctx, conn)
		for _, node := range nodes {
			more, failed := scan(ctx, conn, node, pattern, yield)
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

// scan yields the pages of one node. It reports whether the caller wants further pages.
func scan(ctx context.Context, conn *Conn, node rueidis.Client, pattern string, yield func([]string, error) bool) (more bool, err error) {
	for cursor := uint64(0); ; {
		page, err := conn.doOn(ctx, node, node.B().Scan().Cursor(cursor).Match(pattern).Count(ScanPage).Build()).AsScanEntry()
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
