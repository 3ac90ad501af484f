// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// apply returns source as it is with the edit.
func (e edit) apply(source string) (string, error) {
	// The newline before makes it match whole lines only.
	source, old := "\n"+source, "\n"+e.old
	found, at := 0, 0
	for i := range source {
		if strings.HasPrefix(source[i:], old) {
			found, at = found+1, i
		}
	}
	if found != 1 {
		return "", fmt.Errorf("its old text is %d times in %s, not once", found, e.file)
	}
	return source[1:at+1] + e.new + source[at+len(old):], nil
}

// broken returns the files that the mutant changes, as it makes them.
func (m mutant) broken(root string) (map[string]string, error) {
	files := make(map[string]string)
	for _, e := range m.edits {
		source, changed := files[e.file]
		if !changed {
			text, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, err
			}
			source = string(text)
		}
		source, err := e.apply(source)
		if err != nil {
			return nil, err
		}
		files[e.file] = source
	}
	return files, nil
}

// overlay writes the broken files to a directory, and a description for the go
// command of what they stand for, whose name it returns.
func overlay(dir, root string, files map[string]string) (string, error) {
	replace := make(map[string]string)
	for name, source := range files {
		instead := filepath.Join(dir, strconv.Itoa(len(replace))+filepath.Ext(name))
		if err := os.WriteFile(instead, []byte(source), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, name)] = instead
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	description := filepath.Join(dir, "overlay.json")
	return description, os.WriteFile(description, text, 0o600)
}
