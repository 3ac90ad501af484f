// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// pictureTypes are the extensions of pictures.
var pictureTypes = []string{".svg", ".png", ".gif", ".jpg", ".jpeg", ".webp"}

// unshown returns the pictures below docs that no page of the repository shows.
func unshown(root fs.FS) (all []string, err error) {
	seen := make(map[string]bool)
	err = walk(root, func(name string) error {
		switch ext := strings.ToLower(path.Ext(name)); {
		case ext == ".md":
			text, err := fs.ReadFile(root, name)
			for _, picture := range picturesOf(string(text)) {
				seen[path.Join(path.Dir(name), picture)] = true
			}
			return err
		case strings.HasPrefix(name, "docs/") && slices.Contains(pictureTypes, ext):
			all = append(all, name)
		}
		return nil
	})
	return slices.DeleteFunc(all, func(name string) bool { return seen[name] }), err
}

// walk calls visit with the name of each file, except in folders that begin with a dot.
func walk(root fs.FS, visit func(name string) error) error {
	return fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		return visit(name)
	})
}
