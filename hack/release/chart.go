// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

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
	version := strings.TrimPrefix(r.Version, "v")
	if _, err := r.output(ctx, filepath.Join(r.Tools, "hack", "install"), "go", "tool", "helm", "package", folder,
		"--version="+version, "--app-version="+r.Version, "--destination="+copied); err != nil {
		return err
	}
	packed := "evenkeel-" + version + ".tgz"
	return r.setTimes(filepath.Join(copied, packed), filepath.Join(r.Out, packed))
}

// setTimes copies an archive and gives its files the time of the commit. Helm writes the current time, so that
// two releases of a commit would differ.
func (r *release) setTimes(from, to string) error {
	seconds, err := strconv.ParseInt(r.Date, 10, 64)
	if err != nil {
		return err
	}
	packed, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	var again bytes.Buffer
	zipper := gzip.NewWriter(&again)
	zipper.Header = unzipped.Header // it says that this is a chart
	in, out := tar.NewReader(unzipped), tar.NewWriter(zipper)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		header.ModTime = time.Unix(seconds, 0)
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
	if err := errors.Join(out.Close(), zipper.Close()); err != nil {
		return err
	}
	return os.WriteFile(to, again.Bytes(), 0o644)
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
