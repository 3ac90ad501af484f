// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"errors"
	"fmt"

	"github.com/asynclock/asynclock-go/asynclock"
	"github.com/asynclock/asynclock-go/internal/redisconn"
)

// failure is the error of a request whose command got no proper answer. It is
// final unless it is one of those that asynclock.Session names.
func (st *Store) failure(err error) error {
	if st.isClosed(err) {
		return asynclock.ErrClosed
	}
	return redisconn.Classify(err)
}

// errReply is an answer that our scripts don't give: something between us and
// the server made it up.
var errReply = errors.New("redisstore: unexpected reply")

func foreign(redisKey string) error {
	return fmt.Errorf("%w: %q", asynclock.ErrForeignData, redisKey)
}
