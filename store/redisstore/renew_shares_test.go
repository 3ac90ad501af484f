// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// A renewal that changes only the time of a share writes the lock's value as it is. On any state it
// does the same as a script that always rewrites all: the same reply, keys and times to live.
func TestARenewalOfAShareDoesAsIfItRewroteAll(t *testing.T) {
	onEachServer(t, func(t *testing.T, sv *server) {
		d := newSharesDifferential(t, sv, "release_shares.lua")
		plain, rewriting := d.renewals(t)
		k := d.keys
		renewed := 0
		rapid.Check(t, func(t *rapid.T) {
			for range 20 {
				st := d.drawShared(t)
				args := []string{
					usually(t, "owner", me, "m0", "m1", "stranger"), rapid.SampledFrom([]string{"150000", "1300000"}).Draw(t, "TTL"),
					rapid.SampledFrom([]string{"0", "1"}).Draw(t, "watch"), usually(t, "mode", d.kind, "=r", "=p", "x"),
					rapid.SampledFrom([]string{"0", "1", "2", "3"}).Draw(t, "permits"), "3600000", d.drawLeast(t),
				}
				d.keys = []string{k[0], k[6], k[7], k[1], k[8], k[5], k[2], k[3], k[4]} // first those of the script
				reply := d.run(t, st, plain, 6, args)
				after := d.read(t)
				want := d.run(t, st, rewriting, 6, args)
				wanted := d.read(t)
				d.keys = k
				if !slices.Equal(reply, want) {
					t.Fatalf("answers %q, and if it rewrites all %q\nstate %q\nargs %q", reply, want, st, args)
				}
				if !slices.EqualFunc(after, wanted, alike) {
					t.Fatalf("left behind:\ngot  %q\nwant %q\nstate %q\nargs %q", after, wanted, st, args)
				}
				if reply[0] != "" && reply[0][0] != '-' {
					renewed++
				}
			}
		})
		if renewed == 0 {
			t.Error("no state was renewed")
		}
	})
}

// renewals returns renew_shares.lua as it is, and one that always rewrites all. Time stands still for
// both.
func (d *sharesDifferential) renewals(t *testing.T) (plain, rewriting *redisconn.Script) {
	t.Helper()
	source, err := luaFiles.ReadFile("renew_shares.lua")
	if err != nil {
		t.Fatal(err)
	}
	length := func(end string) string {
		return fmt.Sprintf("'PX', string.format('%%.0f', %s - %d)", end, nowMS)
	}
	still := strings.NewReplacer("'PXAT', latest", length("latest"), "'PXAT', ends", length("ends")).Replace(string(source))
	const condition = "if watch == '1' and not string.find(flags, 'h', 1, true)\n          or "
	if strings.Count(still, condition) != 1 {
		t.Fatal("renew_shares.lua does not decide what to rewrite")
	}
	return d.still(t, still), d.still(t, strings.Replace(still, condition, "if true or ", 1))
}
