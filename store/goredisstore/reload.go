// SPDX-License-Identifier: Apache-2.0

package goredisstore

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// reload reads the topology of a Cluster.
func (d *driver) reload(ctx context.Context) {
	_ = d.cluster.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil }) // the next command fails if it can't
}

// reloadPause is the time in which one reading is enough for all messages that nobody receives. After a failover
// that may be one for each channel of a client, 256 at most.
const reloadPause = 100 * time.Millisecond

// A pace admits one caller in each pause. It keeps whole times, because only they know how much time has passed where the
// clock was set back.
type pace struct{ last atomic.Pointer[time.Time] }

func (p *pace) admits(now time.Time) bool {
	last := p.last.Load()
	return (last == nil || now.Sub(*last) >= reloadPause) && p.last.CompareAndSwap(last, &now)
}
