// SPDX-License-Identifier: Apache-2.0

// Package browser tests the page of package asynclockui in Chromium, as whoever looks at it sees it.
package browser
