// SPDX-License-Identifier: Apache-2.0

package redistest

import "go.uber.org/goleak"

// Leftover is for goleak: the goroutines of rueidis' Cluster client that nobody can wait
// for. It puts off some things, asleep, even if it is closed meanwhile: to look at the
// topology again, by 1 s, and to close the connection to a node that has left, or that
// redirects to itself, by 5 s. A pool of go-redis whose dials fail tries again each second,
// and looks only then whether it was closed.
func Leftover() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
	}
}
