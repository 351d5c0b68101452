// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// charted are the images that the chart runs.
var charted = []string{"machine-controller-manager", "evenkeel-workloads"}

// chart packs the chart with the release's version and the digests of its images: what is installed
// is what was released.
func (r *release) chart(ctx context.Context, images map[string]v1.ImageIndex) error {
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
	for _, name := range charted {
		digest, err := images[name].Digest()
		if err != nil {
			return err
		}
		if err := r.pin(filepath.Join(folder, "values.yaml"), name, digest.String()); err != nil {
			return err
		}
	}
	_, err = r.output(ctx, filepath.Join(r.Tools, "hack", "install"), "go", "tool", "helm", "package", folder,
		"--version="+strings.TrimPrefix(r.Version, "v"), "--app-version="+r.Version, "--destination="+r.Out)
	return err
}

// pin writes an image's digest, and where the image is if it is pushed, into the chart's values.
func (r *release) pin(file, name, digest string) error {
	values, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	repository := "  repository: evenkeel/" + name + "\n"
	head, image, found := bytes.Cut(values, []byte(repository))
	before, after, pinned := bytes.Cut(image, []byte("  digest: \"\"\n"))
	if !found || !pinned || bytes.Contains(before, []byte("repository:")) {
		return fmt.Errorf("the chart's values have no digest to set for the image %s", name)
	}
	if r.Push != "" {
		repository = "  repository: " + r.Push + "/" + name + "\n"
	}
	return os.WriteFile(file, slices.Concat(head, []byte(repository), before, []byte("  digest: "+digest+"\n"), after), 0o644)
}
