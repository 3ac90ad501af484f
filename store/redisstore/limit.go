// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"strconv"

	"github.com/asynclock/asynclock-go/internal/redisconn"
	"github.com/asynclock/asynclock-go/store"
)

// SetLimit stores the limit in a Redis key of its own, which has no TTL. A server that loses its data
// loses the limit, too. In the grace after a restart or a failover the limit is stored, and nobody is
// granted anything until the grace is over.
func (s *session) SetLimit(ctx context.Context, key string, limit int32) error {
	if err := s.usable(); err != nil {
		return err
	}
	if err := features.CheckLimit(limit); err != nil {
		return err
	}
	if err := redisconn.CheckKey(key); err != nil {
		return err
	}
	var c call
	c.setLimit(s.store.settings.prefix, key, limit, s.store.guard(key))
	result := s.store.runOne(ctx, &c)
	if n, ok := result.Integer(); ok && n == replyLimitSet {
		return nil
	}
	r := newReply(result)
	if r.number() == replyForeign {
		r.foreign()
	} else if r.err == nil {
		r.err = errReply
	}
	return r.failed(s.store)
}

// replyLimitSet is what limit.lua answers.
const replyLimitSet = 1

// setLimit is a run of limit.lua, which describes its keys and arguments.
func (c *call) setLimit(prefix, key string, limit int32, g guard) {
	c.script = limitScript
	c.allKeys(prefix, key, true)
	c.number(int64(limit))
	c.guard(g)
}

// addLimits completes descriptions of keys by their stored limits. These are no Redis keys of
// inspect.lua. They are usually not there, and a Cluster's node that moves a slot refuses a script
// that names a key that is not there.
func (st *Store) addLimits(ctx context.Context, infos []store.Info) (errs []error) {
	names, errs := make([]string, len(infos)), make([]error, len(infos))
	for i := range infos {
		names[i] = string(appendKey(nil, st.settings.prefix, bucketOf(infos[i].Key), infos[i].Key, limitKind[0]))
	}
	for i, result := range st.conn.GetAll(ctx, names) {
		value, ok, err := result.TextIfAny()
		limit, isLimit := parseLimit(value)
		switch {
		case errors.Is(err, errReply):
			errs[i] = err
		case err != nil:
			errs[i] = st.conn.Failure(err)
		case !ok:
		case !isLimit:
			errs[i] = foreign(names[i])
		default:
			infos[i].StoredLimit = limit
			if infos[i].Mode == store.Permits {
				infos[i].Limit = limit
			}
		}
	}
	return errs
}

// parseLimit reads what limit.lua has stored, as shares.lua does.
func parseLimit(value string) (limit int, ok bool) {
	limit, err := strconv.Atoi(value)
	return limit, err == nil && limit >= 1 && limit <= store.MaxPermits && strconv.Itoa(limit) == value
}
