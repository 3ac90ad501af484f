// SPDX-License-Identifier: Apache-2.0

package springredis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/asynclock/asynclock-go/internal/redischeck"
	"github.com/asynclock/asynclock-go/store"
)

var _ store.CheckedStore = (*Store)(nil)

// Check examines the servers as redisstore's does, without the failover grace, which this store has not. Besides the
// rights in the package comment it can use +info and, in a Cluster, +cluster|info.
func (st *Store) Check(ctx context.Context, report func(store.Finding)) {
	st.check(ctx, redischeck.Apart, report)
}

// spread is the number of keys that Check asks servers by. A Cluster's server that has few slots may be left out.
const spread = 256

// check is Check with another time between the looks at the clocks.
func (st *Store) check(ctx context.Context, apart time.Duration, report func(store.Finding)) {
	if st.conn == nil {
		report(store.Finding{Check: "server", Verdict: store.VerdictFail, Fact: errZero.Error() + ".", Fix: "Make the store by Open, OpenURL or New."})
		return
	}
	d := redischeck.Deployment{
		Keys: make([]string, spread), Cluster: st.conn.Cluster(), Sentinel: st.conn.Sentinel(),
		Ask: st.ask, Own: st.checkRegistry, Apart: apart,
	}
	for i := range d.Keys {
		d.Keys[i] = st.names.lock(strconv.Itoa(i)) // a registry key with braces puts all into one slot, and its locks, too
	}
	redischeck.Check(ctx, d, report)
}

// ask runs redischeck's script.
func (st *Store) ask(ctx context.Context, key string, args []string) ([]string, error) {
	texts, err := st.runOne(ctx, redischeck.Script, call{[]string{key}, args}).AsStrSlice()
	if err != nil {
		err = st.conn.Failure(err)
	}
	return texts, err
}

// checkRegistry says what has to be the same in Java.
func (st *Store) checkRegistry(context.Context) store.Finding {
	return store.Finding{
		Check: "registry",
		Fact:  fmt.Sprintf("The registry key is %q, which Java's RedisLockRegistry has to have, too. Waiters are of type %s.", st.names.registryKey, st.settings.lockType),
	}
}
