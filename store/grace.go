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

	// Grace returns for how long the key is granted to nobody yet, even if nobody holds it; 0: it is granted. It changes
	// nothing. The errors are those of Inspect.
	Grace(ctx context.Context, key string) (time.Duration, error)
}
