// SPDX-License-Identifier: Apache-2.0

// Package prose holds the repository's pages and comments to rule 7 of CONTRIBUTING.md. Its
// test finds phrases that foreign readers stumble over, and sentences that are too long.
package prose
