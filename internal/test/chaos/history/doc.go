// SPDX-License-Identifier: Apache-2.0

// Package history is what a run of the fault suite leaves behind: who asked for
// which key, got it and lost it, what was written under it, and which faults
// there were, each with its times.
//
// A history is files of JSON lines, one per process, since a process that may be
// killed at any moment can't share a file's buffer with others. All times are of
// one clock that every process of a machine shares.
package history
