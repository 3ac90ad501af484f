// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"time"

	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// tables are Java's table and ours beside it. Keys go by LOCK_KEY there, and owners by
// CLIENT_ID.
type tables struct {
	*settings

	clocks skewWatch
}

var _ sqlconn.Tables = (*tables)(nil)

// timeFormat is how a time is written to a column without zone.
const timeFormat = "2006-01-02 15:04:05.000000"

// A request is what routines take.
type request struct {
	Schema string         `json:"schema"` // what the routines have to be made for
	Region string         `json:"region"`
	Now    string         `json:"now"`
	Base   int64          `json:"base"` // µs
	Items  []sqlconn.Item `json:"items"`
}

func (t *tables) Request(sent time.Time, items []sqlconn.Item) any {
	return request{
		Schema: t.version.column() + " 1",
		Region: t.region,
		Now:    sent.UTC().Format(timeFormat),
		Base:   t.base().Microseconds(),
		Items:  items,
	}
}

func (t *tables) Item(key string) sqlconn.Item {
	return sqlconn.Item{Key: lockKey(key), Name: sqlconn.KeyName(key)}
}

func (t *tables) Owner(owner string) string { return clientID(owner) }

// Fence returns the same name for all keys that are one lock to Java. The encoded name of a
// region never contains "%%".
func (t *tables) Fence(key string) string { return sqlconn.KeyName(t.fence) + "%%" + lockKey(key) }

// Holder describes the holder of a key. The id of a Java repository is its secret: with it,
// others could release in its name. Its first digits are enough to tell two of them apart.
func (t *tables) Holder(a sqlconn.Answer) string {
	if a.Client != "" {
		return "Spring JdbcLockRegistry " + a.Client + "…"
	}
	text, _ := sqlconn.DecodeName(a.Holder)
	return text
}

func (t *tables) Observe(server, sent, received time.Time) { t.clocks.observe(server, sent, received) }

// base is what readers add to the column that says when a lock ends.
func (s *settings) base() time.Duration {
	if s.version == Spring6 {
		return s.ttl
	}
	return 0
}

// config says what the tables and routines are called.
func (t *tables) config() sqlconn.Config {
	lock := t.prefix + "LOCK_"
	return sqlconn.Config{
		Package: "springsql", Prefix: t.prefix, Routines: lock, Fence: lock + "FENCE", Tables: t, Features: features, Clock: t.clock(),
	}
}
