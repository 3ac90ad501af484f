// SPDX-License-Identifier: Apache-2.0

// Package examples has complete programs to copy, a folder each. README.md lists them. Its test runs them, and
// compares what they print with the file output.txt of the folder.
package examples
