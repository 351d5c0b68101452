// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// chart packs the chart with the release's version and the digest of its image: what is installed
// is what was released.
func (r *release) chart(ctx context.Context, image v1.ImageIndex) error {
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	copied, err := os.MkdirTemp("", "evenkeel-chart")
	if err != nil {
		return err
	}
	defer os.RemoveAll(copied)
	folder := filepath.Join(copied, "evenkeel")
	// The chart shares files with other folders by symbolic links: the copy has the files.
	if _, err := r.output(ctx, r.Root, "cp", "-RL", filepath.Join("charts", "evenkeel"), folder); err != nil {
		return err
	}
	if err := r.pin(filepath.Join(folder, "values.yaml"), digest.String()); err != nil {
		return err
	}
	_, err = r.output(ctx, filepath.Join(r.Tools, "hack", "install"), "go", "tool", "helm", "package", folder,
		"--version="+strings.TrimPrefix(r.Version, "v"), "--app-version="+r.Version, "--destination="+r.Out)
	return err
}

// pin writes the image's digest, and where the image is if it is pushed, into the chart's values.
func (r *release) pin(file, digest string) error {
	values, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	changes := map[string]string{`  digest: ""`: `  digest: ` + digest}
	if r.Push != "" {
		changes["  repository: evenkeel/machine-controller-manager"] = "  repository: " + r.Push + "/machine-controller-manager"
	}
	for from, to := range changes {
		if bytes.Count(values, []byte(from+"\n")) != 1 {
			return fmt.Errorf("the chart's values do not have the line %q once", from)
		}
		values = bytes.Replace(values, []byte(from+"\n"), []byte(to+"\n"), 1)
	}
	return os.WriteFile(file, values, 0o644)
}
