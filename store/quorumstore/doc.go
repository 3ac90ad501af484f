// SPDX-License-Identifier: Apache-2.0

// Package quorumstore keeps locks on a majority of independent stores, usually three or five Redis servers. A lock
// outlives the servers of a minority, whatever happens to them, and the others go on without a pause.
//
//	nodes, err := quorumstore.New(
//		quorumstore.Node{Name: "a", Store: redisA}, // three stores of package redisstore
//		quorumstore.Node{Name: "b", Store: redisB},
//		quorumstore.Node{Name: "c", Store: redisC},
//	)
//	client, err := asynclock.New(nodes)
//
// It is votes, not consensus: use it with fences. docs/quorum.md says when to use it, and what else survives a server.
//
// A vote is a lease of one node, by that node's rules. A lease of the quorum is trusted while a majority of its votes
// is. A node has one trusted vote of a key at a time, and two majorities share a node. So two leases are never trusted
// at the same time. The rest follows from that, and each rule is in docs/model/quorum.pml:
//
//   - Q1. A lease lasts for as long as the vote in the middle: with three votes, the second to end.
//   - Q2. A vote that has ended never revives. It is not renewed, and a late answer counts nothing. Otherwise a node
//     that has forgotten everything would write it anew.
//   - Q3. A holder takes a lost vote again only while a majority of its votes is trusted.
//   - Q4. A vote has an owner id of its own. An id that was given back is never used again.
//   - Q5. A release waits for the answers of its node, or says that it is uncertain.
//   - Q6. Only the answer to a request makes a vote. A message makes its claim ask.
//   - Q7. A lease's token is the largest of its votes. A vote counts only if its node will give no smaller one, nor
//     the same: see token.go.
//   - Q8. Each key has an order of the nodes. The first one that answers is the door, where clients queue. A claim
//     without the door gives back all other votes, and a claim that can have no majority gives back all. A door is stuck
//     that is held while a majority is free: see stuck.go.
//
// To read the code, begin with vote.go and claim.go, which have the rules. acquire.go, renew.go and release.go ask the
// nodes; see.go shows what they have.
package quorumstore
