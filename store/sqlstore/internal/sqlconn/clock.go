// SPDX-License-Identifier: Apache-2.0

package sqlconn

import (
	"context"
	"fmt"
	"time"

	"github.com/asynclock/asynclock-go/internal/storecheck"
	"github.com/asynclock/asynclock-go/store"
)

// A Clock says what a difference between the server's clock and this machine's means to a store.
type Clock struct {
	Bound  time.Duration // differences up to it mean nothing
	Beyond store.Verdict // about larger ones
	Means  string        // what follows from them
}

// clock compares the server's clock with this machine's.
func (c *Conn) clock() storecheck.Probe {
	return storecheck.Probe{Check: "clock", Find: func(ctx context.Context) (store.Finding, error) {
		sent := time.Now()
		micros, err := Value[int64](ctx, c, c.dialect.clock)
		if err != nil {
			return store.Finding{Fix: toRun + c.dialect.clock}, err
		}
		return c.judgeClock(Ahead(time.UnixMicro(micros), sent, time.Now())), nil
	}}
}

func (c *Conn) judgeClock(ahead time.Duration) store.Finding {
	if ahead.Abs() <= c.Clock.Bound {
		return store.Finding{Fact: fmt.Sprintf("the clocks of the server and of this machine differ by at most %v", c.Clock.Bound)}
	}
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	return store.Finding{
		Verdict: c.Clock.Beyond,
		Fact:    fmt.Sprintf("the server's clock is %v %s this machine's; %s", ahead.Abs().Round(time.Millisecond), direction, c.Clock.Means),
		Fix:     "synchronize the clocks of the server and of all clients, as by NTP",
	}
}

// Ahead returns by how much a server's clock is ahead of this machine's at least. The server's clock stood at server at
// some moment between the sending of a request and the receipt of its answer.
func Ahead(server, sent, received time.Time) time.Duration {
	if ahead := server.Sub(received.Round(0)); ahead > 0 { // Round: by the wall clock
		return ahead
	}
	return min(server.Sub(sent.Round(0)), 0)
}
