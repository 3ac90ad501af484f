// SPDX-License-Identifier: Apache-2.0

// Command bench measures asynclock against a floor, on a real Redis server that
// it starts itself.
//
//	cd bench && go run .
//
// The floor sends only the commands that any lock must send, through the same
// Redis client library with the same settings. Both are measured in turn, one
// operation each, so that whatever else the machine does meets both. Absolute
// times drift from run to run and machine to machine; the ratio is the result.
package main
