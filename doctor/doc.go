// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out whether a store is fit for locks, and why a key is waited for. The commands asynclock
// doctor and asynclock why print what it finds.
//
//	findings, err := doctor.Check(ctx, st)
//	for _, f := range findings {
//		fmt.Println(f.Verdict, f.Check, f.Fact, f.Fix)
//	}
//
// [Check] and [Why] open a session of their own on the store, as a client does. They read keys, and change none. Check takes keys
// with random names below [ScratchPrefix], for milliseconds, and gives them back. A store may remember
// the last tokens of keys that were given back, as that of Redis does for an hour.
//
// To read the code, begin with check.go and why.go. Each check of a store is in a file of its own: answers.go, lock.go,
// messages.go and locks.go. holding.go says what is known of one key.
package doctor
