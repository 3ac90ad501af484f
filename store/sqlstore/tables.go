// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
)

// tables are the store's own. Keys go by their names there, and owners as they are.
type tables struct{}

var _ sqlconn.Tables = tables{}

// schema is what the routines go by.
const schema = "native 2"

// A request is what routines take.
type request struct {
	Schema string         `json:"schema"` // what the routines have to be made for
	Items  []sqlconn.Item `json:"items"`
}

func (tables) Request(_ time.Time, items []sqlconn.Item) any { return request{schema, items} }
func (tables) Item(key string) sqlconn.Item                  { return sqlconn.Item{Key: sqlconn.KeyName(key)} }
func (tables) Owner(owner string) string                     { return owner }
func (tables) Fence(key string) string                       { return sqlconn.KeyName(key) }
func (tables) Observe(_, _, _ time.Time)                     {} // no other clock than the server's matters

// Holder describes one holder by what it says of itself, and several by their number.
func (tables) Holder(a sqlconn.Answer) string {
	switch {
	case a.Count > 1 && a.Mode == store.Shared:
		return fmt.Sprintf("%d readers", a.Count)
	case a.Count > 1:
		return fmt.Sprintf("%d holders of %d permits", a.Count, a.Used)
	}
	text, _ := sqlconn.DecodeName(a.Holder)
	return text
}
