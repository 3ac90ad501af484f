// SPDX-License-Identifier: Apache-2.0

// Package recipes has the code that docs/recipes.md shows, except the transaction with a fence, which
// is in internal/test/fences.
package recipes
