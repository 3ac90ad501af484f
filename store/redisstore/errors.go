// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"fmt"

	"github.com/asynclock/asynclock-go/store"
)

// errReply is an answer that our scripts don't give: something between us and
// the server made it up.
var errReply = errors.New("redisstore: unexpected reply")

func foreign(redisKey string) error {
	return fmt.Errorf("%w: %q", store.ErrForeignData, redisKey)
}
