// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"
)

// A GraceSession is a [Session] of a store that grants nothing for a while after its server may have forgotten leases
// ([ErrGrace]). A session without it has no such time, or can't tell.
type GraceSession interface {
	Session

	// Grace returns for how long the key is granted to nobody, even if nobody holds it; 0: it is granted. Without begun that time
	// begins with the next request. A request with an unusually long TTL may have to wait for longer. Grace changes nothing. The
	// errors are those of Inspect, and [ErrDenied] if this user may not know.
	Grace(ctx context.Context, key string) (left time.Duration, begun bool, err error)
}
