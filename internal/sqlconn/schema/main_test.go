// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestScriptsAreFresh: what is checked in was generated from these sources.
func TestScriptsAreFresh(t *testing.T) {
	t.Parallel()
	for _, s := range scripts {
		want, err := s.generate()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(toStores, s.file()))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not what its sources make: run go generate ./internal/sqlconn/schema", s.file())
		}
	}
}
