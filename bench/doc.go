// SPDX-License-Identifier: Apache-2.0

// Command bench measures asynclock, its peers and a floor side by side, on real servers that it
// starts itself.
//
//	cd bench && go run .                       # tables; about half an hour
//	cd bench && go run . -only handoff         # some workloads
//	cd bench && go run . -among asynclock,etcd # some peers
//	cd bench && go run . -short                # does everything still run? a minute
//	cd bench && go run . -out ../docs/benchmarks
//	cd bench && go run . -families -out ../docs/benchmarks
//
// The last one compares the other families: readers, permits, several keys, elections, quorums. It takes ten
// minutes. Peers in Java are built with Maven and need Java 17 and ZooKeeper. A peer that can't be had is a
// row that says why. With -families -only quorum, which is the part without Java, it takes three minutes.
//
// The floor sends only the commands that every lock must send, through the same Redis client
// library with the same settings. Peers take turns, a round of each, so that other load of the
// machine affects all of them. Absolute times drift from run to run and machine to machine; the
// ratio is the result.
//
// docs/benchmarks says what each workload does and how each peer is set up.
//
// To read the code, begin with plan.go and families.go, the tables of what is measured, and
// workload.go, which measures. Each kind of workload has a file. Some play a part in another process:
// child.go. The peers are in peers.go, and those in Java speak by java.go. Errors end a workload: fail.go.
package main
