// SPDX-License-Identifier: Apache-2.0

// Package asynclockotel makes metrics and traces of locks with OpenTelemetry. One option of a client is all of it:
//
//	locks, err := asynclock.New(store, asynclockotel.Observe())
//
// The table of metrics, a dashboard, and alerts are in docs/observability.md.
//
// # Metrics
//
// Counts and states are those of [asynclock.Client.Stats]. They are read when metrics are collected, so the locks
// pay nothing for them. Three histograms are made from hooks: how long requests wait, how long leases last, how long
// calls to the store take. The first two have the class of keys ([asynclock.WithClass]), of which 64 are told apart. No metric
// has a key, a token, an owner or a holder.
//
// # Traces
//
// A request has a span if it waited for others, or failed. A free key has none, unless the store is slow. A lease has a span if its request is
// part of a trace that is sampled. Spans of work under the lease are below it. A wait is linked to the lease that was in the way, if
// that is of the same client. Otherwise tokens tell which it was: asynclock.blocked_by of the wait is asynclock.token of the lease.
package asynclockotel
