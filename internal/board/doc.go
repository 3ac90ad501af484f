// SPDX-License-Identifier: Apache-2.0

// Package board has what the commands top and watch and the page of asynclockui show of the keys: one sample after
// another, what has changed between them, and rows that can be sorted.
//
// The files: sample.go takes samples, change.go compares them, board.go keeps rows over time, table.go has what their
// columns say, and take.go takes a key from its holder.
package board
