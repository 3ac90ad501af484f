// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"time"

	"github.com/asynclock/asynclock-go/store"
)

// The store's answers, as values for tables.

// granted is an answer that grants, from a store whose tokens rise by one.
func granted(token int64) store.AcquireReply {
	return store.AcquireReply{Status: store.Granted, Grant: store.Grant{Token: token}, WillNotify: true}
}

// waiting is an answer to a waiter that is not the first.
func waiting(mark int64) store.AcquireReply {
	return store.AcquireReply{Status: store.Waiting, Mark: mark, Rank: 1, Remaining: time.Minute, WillNotify: true}
}

// failed is no answer, or a refusal.
func failed(err error) store.AcquireReply { return store.AcquireReply{Err: err} }

// followed is granted by a store whose tokens rise with its clock.
func followed(token int64) store.AcquireReply {
	reply := granted(token)
	reply.TokensFollowClock = true
	return reply
}

// block grants so many permits of three.
func block(token int64, n int32) store.AcquireReply {
	reply := granted(token)
	reply.Weight, reply.Limit = n, 3
	return reply
}
