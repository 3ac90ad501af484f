// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"testing"

	"github.com/asynclock/asynclock-go/store"
)

// A release of a share tells the script whether it is clean. One that is uncertain is not, whatever
// the client says.
func TestACleanReleaseOfAShareSaysSo(t *testing.T) {
	for want, q := range map[string]store.ReleaseRequest{
		"0":   {Key: "key", Owner: me, Token: 1},
		"1":   {Key: "key", Owner: me, Token: 1, Uncertain: true, Clean: true},
		clean: {Key: "key", Owner: me, Token: 1, Clean: true},
	} {
		var c call
		if err := c.releaseShares("test", &q, noAddress, guard{}); err != nil {
			t.Fatal(err)
		}
		if _, args := c.words(); args[3] != want {
			t.Errorf("%+v is sent as %q, want %q", q, args[3], want)
		}
	}
}
