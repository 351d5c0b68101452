// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

const platforms = "linux/amd64,linux/arm64"

// images builds an image of each command as an OCI layout, packs it, and returns the images'
// indexes by name.
func (r *release) images(ctx context.Context) (map[string]v1.ImageIndex, error) {
	ko := filepath.Join(r.Tools, ".local", "bin", "ko")
	if _, err := r.output(ctx, filepath.Join(r.Tools, "hack", "release"), "go", "build", "-o", ko, "github.com/google/ko"); err != nil {
		return nil, err
	}
	found := map[string]v1.ImageIndex{}
	for _, name := range r.Commands {
		fmt.Println("image", name)
		folder := filepath.Join(r.Out, "images", name)
		if _, err := r.output(ctx, r.Root, "env", "KO_DOCKER_REPO=push.invalid/"+name, "KO_DEFAULTBASEIMAGE="+r.Base,
			ko, "build", "--bare", "--push=false", "--platform="+platforms, "--oci-layout-path="+folder,
			"--sbom=spdx", "--sbom-dir="+filepath.Join(r.Out, "sbom"), "./cmd/"+name); err != nil {
			return nil, err
		}
		index, err := only(folder)
		if err != nil {
			return nil, fmt.Errorf("read image %s: %w", name, err)
		}
		if err := pack(folder, folder+".tar"); err != nil {
			return nil, fmt.Errorf("pack image %s: %w", name, err)
		}
		found[name] = index
	}
	return found, nil
}

// only is the one image, for several platforms, that a layout holds.
func only(folder string) (v1.ImageIndex, error) {
	all, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 || !manifest.Manifests[0].MediaType.IsIndex() {
		return nil, fmt.Errorf("%d images, or none for several platforms, where one is expected", len(manifest.Manifests))
	}
	return all.ImageIndex(manifest.Manifests[0].Digest)
}

// pack writes a folder into a tar file that is the same whenever it is packed.
func pack(folder, file string) error {
	to, err := os.Create(file)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(to)
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return add(archive, folder, path)
	})
	return errors.Join(err, archive.Close(), to.Close())
}

func add(archive *tar.Writer, folder, path string) error {
	name, err := filepath.Rel(folder, path)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: info.Size(), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err = io.Copy(archive, file)
	return err
}
