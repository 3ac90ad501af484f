// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"regexp"
)

// These find the line breaks inside a peer of a result, and the one at its end. A string in JSON has none.
var (
	deeper = regexp.MustCompile(`\n {9,}`)
	ending = regexp.MustCompile(`\n {8}([\]}])`)
)

// writeJSON writes a report's figures with a line for each peer of a result. Indented all the way, each
// number would have a line of its own.
func writeJSON(path string, figures any) error {
	data, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	data = ending.ReplaceAll(deeper.ReplaceAll(data, []byte(" ")), []byte(" $1"))
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
