// SPDX-License-Identifier: Apache-2.0

// Command pictures draws docs/pictures. Run it at the root of the repository, as make pictures does:
//
//	go run ./internal/pictures          # demo.svg from demo.cast, and handoff.svg
//	go run ./internal/pictures -record  # first record demo.cast again
//
// The same recording yields the same bytes. demo.svg is made by svg-term, a program for Node.js,
// which npx gets. The tests need neither: demo.svg carries the hash of its recording.
//
// record.go runs the demo in a terminal, cast.go and tidy.go are the recording, reel.go makes the
// animation, timeline.go draws timelines, and handoff.go has the facts of one.
package main
