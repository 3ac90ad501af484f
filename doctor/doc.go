// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out whether a store is fit for locks, and why a key is waited for. The command asynclock
// doctor prints what it finds.
package doctor
