// SPDX-License-Identifier: Apache-2.0

// Package fences tests each fence at its real resource. It is a module of its own, because the
// clients of all these resources should be in no user's go.mod.
//
// The file sleeper_test.go has what all fences share: a holder in another process is stopped past its
// TTL, the next holder writes, and the first one goes on and writes too late. The other files have a
// resource each.
package fences
