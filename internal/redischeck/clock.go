// SPDX-License-Identifier: Apache-2.0

package redischeck

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// A sample is a look at a server's clock, between two moments of ours.
type sample struct {
	server        time.Time
	before, after time.Time // with a monotonic clock
}

// compareClocks looks at the servers' clocks once more.
func (d Deployment) compareClocks(ctx context.Context, servers []*server, report func(store.Finding)) {
	pause := time.NewTimer(d.Apart)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return
	}
	findings := make(map[*server]store.Finding)
	d.ask(ctx, servers, nil, func(s *server, a answer) {
		findings[s] = pace(s.clock, a.clock)
		if a.err != nil {
			findings[s] = store.Finding{Check: "clock", Verdict: store.VerdictNote, Fact: fmt.Sprintf("The second look at the clock has failed: %v.", a.err)}
		}
	})
	report(merge(servers, func(s *server) store.Finding { return findings[s] }))
}

// Limits of a clock that is as it should be.
const (
	percent   = 100         // of the pause, by how much the server's may be longer or shorter: the hundredth part
	maxOffset = time.Second // from ours
)

// pace is the check of whether a server's clock runs as ours does: leases are counted by both. A look takes some time, in
// which the server may have been asked at any moment. The doubt is in the clock's favor.
func pace(a, b sample) store.Finding {
	server := b.server.Sub(a.server)
	least, most := b.before.Sub(a.after), b.after.Sub(a.before)
	found := store.Finding{Check: "clock"}
	offset := max(b.before.Round(0).Sub(b.server), b.server.Sub(b.after.Round(0)))
	switch {
	case server < least-least/percent || server > most+most/percent:
		found.Verdict = store.VerdictWarn
		found.Fact = fmt.Sprintf("In %v by the clock of this host, that of the server went on by %v: it runs at another rate, or was set.",
			b.before.Sub(a.before).Round(time.Millisecond), server.Round(time.Millisecond))
		found.Fix = "Let a time service slew the clocks of both hosts, and never set them."
	case offset > maxOffset:
		found.Verdict = store.VerdictNote
		found.Fact = fmt.Sprintf("The clocks of the server and of this host differ by %v. Locks don't mind; whoever reads logs may.", offset.Round(time.Millisecond))
		found.Fix = "Synchronize the clocks of both hosts."
	default:
		found.Fact = "The server's clock runs as that of this host, and differs from it by less than a second."
	}
	return found
}
