// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	reference = regexp.MustCompile(`<([a-z]+)[^>]*?\s(?:href|src)="([^"]*)"`)
	anchor    = regexp.MustCompile(`<[a-z0-9]+[^>]*?\s(?:id|name)="([^"]*)"`)
)

// readFiles returns the files of a site. Only pages have a content.
func readFiles(site fs.FS) (map[string]string, error) {
	files := map[string]string{}
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		var text []byte
		if path.Ext(name) == ".html" {
			text, err = fs.ReadFile(site, name)
		}
		files[name] = string(text)
		return err
	})
	return files, err
}

// check returns the links to files or anchors of the site that do not exist, and what a browser would load from
// elsewhere.
func check(files map[string]string) (wrong []error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for _, match := range reference.FindAllStringSubmatch(files[name], -1) {
			element, to := match[1], html.UnescapeString(match[2])
			target, err := url.Parse(to)
			switch {
			case err != nil:
				wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
			case target.IsAbs() || target.Host != "":
				if element != "a" && target.Scheme != "data" {
					wrong = append(wrong, fmt.Errorf("%s: loads %s", name, to))
				}
			case !resolves(files, name, target):
				wrong = append(wrong, fmt.Errorf("%s: there is no %s", name, to))
			}
		}
	}
	return wrong
}

// resolves reports whether a link of a page names a file, and an anchor in it.
func resolves(files map[string]string, name string, target *url.URL) bool {
	file := name
	if target.Path != "" {
		file = path.Join(path.Dir(name), target.Path)
	}
	text, exists := files[file]
	if !exists || strings.HasPrefix(target.Path, "/") {
		return false
	}
	return target.Fragment == "" || slices.ContainsFunc(anchor.FindAllStringSubmatch(text, -1), func(match []string) bool {
		return html.UnescapeString(match[1]) == target.Fragment
	})
}
