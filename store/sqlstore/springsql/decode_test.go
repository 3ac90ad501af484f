// SPDX-License-Identifier: Apache-2.0

package springsql

import (
	"testing"

	"github.com/asynclock/asynclock-go/store"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn"
	"github.com/asynclock/asynclock-go/store/sqlstore/internal/sqlconn/sqltest"
)

// FuzzReply: whatever comes instead of a routine's answer is an error, never a grant
// without a token.
func FuzzReply(f *testing.F) {
	f.Add(`{"clock": 1, "items": [{"s": 1, "token": 5, "clocked": true}]}`)
	f.Add(`{"clock": 1, "items": [{"s": 3, "held": true, "holder": "a%2", "left": -5}]}`)
	f.Add(`{"clock": 1, "items": [{"s": 3, "held": true, "client": "0f8fad5b", "left": 5}]}`)
	f.Add(`{"clock": 1, "items": [{"s": 3, "held": false}]}`)
	f.Add(`{"clock": 0, "items": []}`)
	silent := sqltest.Answering(f, func(string, []sqlconn.Item) ([]sqlconn.Answer, error) { return nil, nil })
	joined, err := unlooked(f, silent).Open("client", func(store.Event) {})
	if err != nil {
		f.Fatal(err)
	}
	s := joined.(*session)
	f.Fuzz(func(t *testing.T, out string) {
		reply, err := sqlconn.ReadReply(out)
		if err != nil {
			return
		}
		for _, a := range reply.Items {
			for _, wait := range []bool{false, true} {
				got, err := s.readAcquire(&store.AcquireRequest{Key: "key", Owner: "me", Wait: wait}, a)
				if (err == nil) != (got.Status != 0) {
					t.Errorf("acquire: got %+v and %v, want a status or an error", got, err)
				}
				if got.Status == store.Granted && got.Token <= 0 {
					t.Errorf("acquire: got %+v, want no grant without a token", got)
				}
			}
		}
	})
}
