// SPDX-License-Identifier: Apache-2.0

// Package store is the contract between a lock client and the place where locks live. It
// is for authors of stores. Programs that use locks need package asynclock only.
//
// A [Store] opens a [Session] for each client. The session takes requests in batches:
// [Session.Acquire] (acquire.go), [Session.Renew] (renew.go) and [Session.Release]
// (release.go). It notifies its client with an [Event] (event.go). An owner takes a [Share] of
// its key (share.go): usually all of it. [Features] say what a store can do. What only some sessions
// can do is an interface of its own: [LimitSession] (limit.go), [NoteSession] (note.go), [ObserveSession]
// (observe.go), [SharingSession] (share.go), [SpellingSession] (spelling.go) and [GraceSession] (grace.go).
//
// A minor release may add methods to these interfaces, as well as fields and other interfaces. Its
// changelog then says what a store has to do.
//
// To write a store, begin with package memstore, the shortest one, and prove yours with
// package storetest:
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
//	}
package store
