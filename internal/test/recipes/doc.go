// SPDX-License-Identifier: Apache-2.0

// Package recipes has the code that docs/recipes.md shows, except the transactions with a fence, which
// are in internal/test/fences.
package recipes
