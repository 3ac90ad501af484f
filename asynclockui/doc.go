// SPDX-License-Identifier: Apache-2.0

// Package asynclockui is a page that shows the locks of a store live: who holds what, and who waits. It is for the admin
// pages of a service of your own. The command asynclock ui serves the same page.
//
//	page, err := asynclockui.Handler(locks, func(r *http.Request) bool { return isAdmin(r) })
//	mux.Handle("/admin/locks/", page)
//
// The page only reads, unless [WithForceUnlock] or [WithChecks] allows more. It needs no JavaScript, and loads nothing
// from elsewhere. However many look at it, it lists the keys at most once a second, and only while somebody looks.
//
// To read the code, begin with handler.go, which decides who sees which page. Each page is in a file of its own: locks.go,
// key.go, jobs.go, checks.go, stats.go and unlock.go. live.go has what all who look share, and events.go sends it to them.
package asynclockui
