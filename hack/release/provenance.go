// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const source = "git+https://github.com/evenkeel/evenkeel"

// statement is an in-toto statement with a predicate of SLSA provenance v1.
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     predicate `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

type predicate struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []subject         `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// provenance writes what was built, from which commit, and with what. It is not signed: who
// publishes it signs it.
func (r *release) provenance(images map[string]v1.ImageIndex) error {
	sums, err := r.files()
	if err != nil {
		return err
	}
	subjects := make([]subject, 0, len(sums)+len(images))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		subjects = append(subjects, subject{Name: name, Digest: map[string]string{"sha256": sums[name]}})
	}
	for _, name := range slices.Sorted(maps.Keys(images)) {
		digest, err := images[name].Digest()
		if err != nil {
			return err
		}
		subjects = append(subjects, subject{Name: "image:" + name, Digest: map[string]string{digest.Algorithm: digest.Hex}})
	}
	text, err := json.MarshalIndent(r.statement(subjects), "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.Out, "provenance.intoto.json"), append(text, '\n'), 0o644)
}

func (r *release) statement(subjects []subject) statement {
	s := statement{Type: "https://in-toto.io/Statement/v1", Subject: subjects, PredicateType: "https://slsa.dev/provenance/v1"}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = source + "/hack/release@v1"
	definition.ExternalParameters = map[string]string{"version": r.Version, "base": r.Base, "url": r.URL}
	definition.InternalParameters = map[string]string{"go": runtime.Version(), "platforms": platforms}
	base, digest, _ := strings.Cut(r.Base, "@sha256:")
	definition.ResolvedDependencies = []subject{
		{URI: source + "@" + r.Commit, Digest: map[string]string{"gitCommit": r.Commit}},
		{URI: "oci://" + base, Digest: map[string]string{"sha256": digest}},
	}
	// A build service names itself, so that a reader knows whom to trust.
	s.Predicate.RunDetails.Builder.ID = cmp.Or(os.Getenv("BUILDER_ID"), "urn:evenkeel:local-build")
	return s
}

const sumsFile = "SHA256SUMS"

// sums writes the checksums of all files, as sha256sum --check reads them.
func (r *release) sums() error {
	sums, err := r.files()
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		text.WriteString(sums[name] + "  " + name + "\n")
	}
	return os.WriteFile(filepath.Join(r.Out, sumsFile), []byte(text.String()), 0o644)
}

// files returns the checksum of each file to publish, by its path in the release's folder. The
// images' unpacked layouts are not published.
func (r *release) files() (map[string]string, error) {
	sums := map[string]string{}
	err := filepath.WalkDir(r.Out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && filepath.Dir(path) == filepath.Join(r.Out, "images") {
			return fs.SkipDir
		}
		if entry.IsDir() || entry.Name() == sumsFile {
			return nil
		}
		name, err := filepath.Rel(r.Out, path)
		if err != nil {
			return err
		}
		sums[filepath.ToSlash(name)], err = sum(path)
		return err
	})
	return sums, err
}

func sum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
