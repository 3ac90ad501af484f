// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// Medians of the benchmark's workload handoff in microseconds, as in docs/benchmarks/results.json.
const (
	ourHandoff    = 226
	pollerHandoff = 992
)

// The lanes of the handoff.
const (
	laneA = iota
	laneKey
	laneB
	laneC
)

var lanes = []string{"A unlocks", "the key", "B waits", "C waits"}

// The edges of the picture. The call of Unlock is at 0, and the server runs it a little later.
const (
	before   = -420
	released = 70
	after    = 1300
)

// handoff shows how a key comes from one process to another, in microseconds since the call of Unlock.
// The facts on other libraries are from their code, in the versions that docs/comparison.md names.
var handoff = timeline{
	title:  "Handoff: A unlocks a key for which B and C wait",
	from:   before,
	to:     after,
	panels: []panel{ours, poller, redisson},
	notes: []string{
		"To scale: from the call of Unlock in A to the return of Lock in B, for asynclock and redislock, at p50, measured while B alone waited",
		"(docs/benchmarks/report.md). Everything else is schematic: what C does, when arrows begin and end, and all times of Redisson.",
	},
}

var ours = panel{
	title: "asynclock: the unlock grants the key to the next one",
	facts: []string{
		"One script releases the key, grants it to the first in the queue and notifies that process alone. The key is never free.",
		"2 commands per handoff, however many wait: B's request, which put it into the queue, and A's release. If B alone waits, a third speeds it up.",
	},
	lanes: lanes,
	bars: []bar{
		{laneA, before, 0, holds, "holds, token 7", 0},
		{laneKey, before, released, holds, "A's, token 7", 0},
		{laneKey, released, after, holds, "B's, token 8", 0},
		{laneB, before, ourHandoff, waits, "waits in the queue", 0},
		{laneB, ourHandoff, after, holds, "holds: writes, with token 8", 0},
		{laneC, before, after, waits, "waits in the queue, hears nothing", 0},
	},
	arrows: []arrow{
		{from: laneA, to: laneKey, sent: 0, came: released, text: "release and grant: one script"},
		{from: laneKey, to: laneB, sent: released + 5, came: ourHandoff - 10, text: "message: the key is B's, with token 8"},
	},
	span: span{0, ourHandoff, fmt.Sprintf("%d µs", ourHandoff)},
}

var poller = panel{
	title: "A poller, here redislock with a poll each millisecond: the key lies free until somebody asks",
	facts: []string{
		"Nobody is notified. Each refused poll is a command. Less frequent polls are fewer commands, and the key lies free for longer.",
		"Any waiter may be the next.",
	},
	lanes: lanes,
	bars: []bar{
		{laneA, before, 0, holds, "holds", 0},
		{laneKey, before, released, holds, "A's", 0},
		{laneKey, released, pollerHandoff - 35, free, "free: nobody has it", 0},
		{laneKey, pollerHandoff - 35, after, holds, "B's", 0},
		{laneB, before, pollerHandoff, waits, "sleeps between polls", 200},
		{laneB, pollerHandoff, after, holds, "holds: writes", 1115},
		{laneC, before, after, waits, "sleeps between polls", 200},
	},
	arrows: []arrow{
		{from: laneA, to: laneKey, sent: 0, came: released, text: "release"},
		{from: laneB, to: laneKey, sent: -158, came: -123, text: "poll: refused", before: true},
		{from: laneKey, to: laneB, sent: -118, came: -83},
		{from: laneC, to: laneKey, sent: -55, came: -20},
		{from: laneKey, to: laneC, sent: -15, came: 20, text: "poll: refused"},
		{from: laneB, to: laneKey, sent: pollerHandoff - 70, came: pollerHandoff - 35, text: "poll: granted", before: true},
		{from: laneKey, to: laneB, sent: pollerHandoff - 30, came: pollerHandoff - 2},
		{from: laneC, to: laneKey, sent: 1020, came: 1055},
		{from: laneKey, to: laneC, sent: 1060, came: 1095, text: "poll: refused"},
	},
	span: span{0, pollerHandoff, fmt.Sprintf("%d µs", pollerHandoff)},
}

var redisson = panel{
	title: "Redisson's RLock: everybody is notified, and all try",
	facts: []string{
		"The unlock deletes the key and publishes a message. In each process that waits a thread wakes and tries. All tries except one fail.",
		"2 commands of the unlock and a try of each waiting process: 34 per handoff with 32 of them, counted in its code.",
	},
	lanes: lanes,
	bars: []bar{
		{laneA, before, 0, holds, "holds", 0},
		{laneKey, before, released, holds, "A's", 0},
		{laneKey, released, 270, free, "free", 0},
		{laneKey, 270, after, holds, "B's, whose try came first", 0},
		{laneB, before, 340, waits, "waits for a message", 0},
		{laneB, 340, after, holds, "holds: writes", 540},
		{laneC, before, after, waits, "waits for a message", 0},
	},
	arrows: []arrow{
		{from: laneA, to: laneKey, sent: 0, came: released, text: "release: delete and publish"},
		{from: laneKey, to: laneB, sent: released + 5, came: 170},
		{from: laneKey, to: laneC, sent: released + 5, came: 210, text: "message to all", before: true},
		{from: laneB, to: laneKey, sent: 190, came: 265},
		{from: laneKey, to: laneB, sent: 275, came: 335},
		{from: laneC, to: laneKey, sent: 345, came: 430},
		{from: laneKey, to: laneC, sent: 440, came: 525, text: "try: refused"},
	},
	span: span{0, 340, "not measured"},
}
