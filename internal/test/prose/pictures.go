// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// pictureTypes are the extensions of pictures.
var pictureTypes = []string{".svg", ".png", ".gif", ".jpg", ".jpeg", ".webp"}

var shown = regexp.MustCompile(`!\[[^\]]*\]\(([^()\s]+)\)`)

// picturesOf returns the pictures that a page shows. A link to a picture does not show it.
func picturesOf(page string) (all []string) {
	for _, found := range shown.FindAllStringSubmatch(code.ReplaceAllString(unfenced(page), ""), -1) {
		all = append(all, found[1])
	}
	return all
}

// unshown returns the pictures below docs that no page of the repository shows.
func unshown(root fs.FS) (all []string, err error) {
	seen := make(map[string]bool)
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case path.Ext(name) == ".md":
			text, err := fs.ReadFile(root, name)
			for _, picture := range picturesOf(string(text)) {
				seen[path.Join(path.Dir(name), picture)] = true
			}
			return err
		case strings.HasPrefix(name, "docs/") && slices.Contains(pictureTypes, strings.ToLower(path.Ext(name))):
			all = append(all, name)
		}
		return nil
	})
	return slices.DeleteFunc(all, func(name string) bool { return seen[name] }), err
}
