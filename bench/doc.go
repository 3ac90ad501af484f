// SPDX-License-Identifier: Apache-2.0

// Command bench measures asynclock, its peers and a floor side by side, on real
// servers that it starts itself.
//
//	cd bench && go run .                       # tables; about twenty minutes
//	cd bench && go run . -only handoff         # some workloads
//	cd bench && go run . -short                # does everything still run? a minute
//	cd bench && go run . -out ../docs/benchmarks
//
// The floor sends only the commands that any lock must send, through the same
// Redis client library with the same settings. Peers take turns, a round of each,
// so that whatever else the machine does meets all of them. Absolute times drift
// from run to run and machine to machine; the ratio is the result.
//
// docs/benchmarks says what each workload does and how each peer is set up.
//
// To read the code, begin with plan.go and workload.go: what is measured, and how. A
// workload has a file of its own (some with a second, for its other process: child.go),
// and each peer has one (peer.go).
package main
