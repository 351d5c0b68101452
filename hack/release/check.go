// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)
	pinned   = regexp.MustCompile(`^.+@(sha256:[0-9a-f]{64})$`)
)

// check reports everything that is wrong with what is asked for, before anything is built.
func (r *release) check(ctx context.Context) error {
	var wrong []error
	if !semantic.MatchString(r.Version) {
		wrong = append(wrong, fmt.Errorf("version %q: write it like v0.1.0", r.Version))
	}
	if !pinned.MatchString(r.Base) {
		wrong = append(wrong, fmt.Errorf("base %q: name the image by its digest, as NAME@sha256: and 64 hexadecimal digits", r.Base))
	}
	if address, err := url.Parse(r.URL); err != nil || address.Scheme != "https" || address.Host == "" {
		wrong = append(wrong, fmt.Errorf("url %q: name the https folder that the archives will be downloaded from", r.URL))
	}
	return errors.Join(append(wrong, r.changelog(), r.clean(ctx))...)
}

// changelog checks that the version has a section in CHANGELOG.md.
func (r *release) changelog() error {
	text, err := os.ReadFile(filepath.Join(r.Root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok && strings.HasPrefix(strings.Trim(heading, "[ \n"), strings.TrimPrefix(r.Version, "v")) {
			return nil
		}
	}
	return fmt.Errorf("CHANGELOG.md has no section %q: write it, with the changes since the last release", "## "+strings.TrimPrefix(r.Version, "v"))
}

// clean checks that what is built is what is committed.
func (r *release) clean(ctx context.Context) error {
	changed, err := r.output(ctx, r.Root, "git", "status", "--porcelain")
	if err == nil && changed != "" {
		err = fmt.Errorf("the working tree has changes that are not committed:\n%s", changed)
	}
	return err
}
