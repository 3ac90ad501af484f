// SPDX-License-Identifier: Apache-2.0

// Package recipes has the recipes of docs/recipes.md that no package and no program of examples shows.
package recipes
