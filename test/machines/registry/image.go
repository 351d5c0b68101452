// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// image is what a registry serves under a name: a program, which becomes /program, and a file of a given size. Its
// content depends on the seed, and cannot be compressed.
type image struct {
	program []byte
	size    int64
	seed    uint64
}

// blob is content that can be read from anywhere, as often as needed.
type blob struct {
	digest string
	size   int64
	kind   string
	open   func() io.Reader
}

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
}

func (b blob) descriptor() descriptor { return descriptor{b.kind, b.digest, b.size} }

// newBlob reads content once, to know its digest.
func newBlob(kind string, open func() io.Reader) (blob, error) {
	sum := sha256.New()
	size, err := io.Copy(sum, open())
	if err != nil {
		return blob{}, err
	}
	return blob{"sha256:" + hex.EncodeToString(sum.Sum(nil)), size, kind, open}, nil
}

func bytesBlob(kind string, content []byte) (blob, error) {
	return newBlob(kind, func() io.Reader { return bytes.NewReader(content) })
}

func jsonBlob(kind string, content any) (blob, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return blob{}, err
	}
	return bytesBlob(kind, raw)
}

// blobs returns the manifest of an image, and what it refers to.
func (i image) blobs() (manifest blob, others []blob, err error) {
	var layers []blob
	program, err := programLayer(i.program)
	if err != nil {
		return blob{}, nil, fmt.Errorf("make layer of the program: %w", err)
	}
	layers = append(layers, program)
	if i.size > 0 {
		file, err := newBlob(layerType, func() io.Reader { return fileLayer(i.size, i.seed) })
		if err != nil {
			return blob{}, nil, fmt.Errorf("make layer of %d bytes: %w", i.size, err)
		}
		layers = append(layers, file)
	}
	var ids []string
	var descriptors []descriptor
	for _, l := range layers {
		ids, descriptors = append(ids, l.digest), append(descriptors, l.descriptor())
	}
	config, err := jsonBlob(configType, map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": map[string]any{"Entrypoint": []string{"/program"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": ids},
	})
	if err != nil {
		return blob{}, nil, err
	}
	manifest, err = jsonBlob(manifestType, map[string]any{"schemaVersion": 2, "mediaType": manifestType, "config": config.descriptor(), "layers": descriptors})
	return manifest, append(layers, config), err
}

func programLayer(program []byte) (blob, error) {
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "program", Mode: 0o755, Size: int64(len(program)), Format: tar.FormatUSTAR}); err != nil {
		return blob{}, err
	}
	if _, err := w.Write(program); err != nil {
		return blob{}, err
	}
	if err := w.Close(); err != nil {
		return blob{}, err
	}
	return bytesBlob(layerType, layer.Bytes())
}

// fileLayer is a tar archive of one file, which is made while it is read.
func fileLayer(size int64, seed uint64) io.Reader {
	var head bytes.Buffer
	_ = tar.NewWriter(&head).WriteHeader(&tar.Header{Name: "content", Mode: 0o644, Size: size, Format: tar.FormatPAX})
	rest := (512-size%512)%512 + 1024 // the last block, and the end of the archive
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	return io.MultiReader(&head, io.LimitReader(rand.NewChaCha8(key), size), io.LimitReader(zeros{}, rest))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
