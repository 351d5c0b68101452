// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// archive is the plugin for one platform, with its license.
type archive struct {
	OS, Arch string
	// Sum is the SHA-256 of the file, in hex.
	Sum string
}

func (a archive) file() string { return fmt.Sprintf("kubectl-evenkeel_%s_%s.tar.gz", a.OS, a.Arch) }

func (a archive) binary() string {
	if a.OS == "windows" {
		return "kubectl-evenkeel.exe"
	}
	return "kubectl-evenkeel"
}

// write writes the archive into a folder and notes its sum. The same content has the same sum,
// whenever it is packed.
func (a *archive) write(folder string, binary, license []byte) error {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	files := tar.NewWriter(zip)
	err := errors.Join(pack(files, a.binary(), 0o755, binary), pack(files, "LICENSE", 0o644, license), files.Close(), zip.Close())
	if err != nil {
		return fmt.Errorf("pack %s: %w", a.file(), err)
	}
	sum := sha256.Sum256(packed.Bytes())
	a.Sum = hex.EncodeToString(sum[:])
	return os.WriteFile(filepath.Join(folder, a.file()), packed.Bytes(), 0o644)
}

func pack(files *tar.Writer, name string, mode int64, content []byte) error {
	if err := files.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := files.Write(content)
	return err
}

// head is the manifest without platforms.
const head = `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: evenkeel
spec:
  version: %s
  homepage: https://github.com/evenkeel/evenkeel
  shortDescription: Show machines, their reserve, Balancers and federated autoscalers
  description: |
    Shows the MachineDeployments of machine-controller-manager by pools and zones with a block for each machine: what
    works, what waits in reserve, what fails. Says why something is as it is, what happens next, and what is wrong with
    what to do about it. Also for Balancers and federated autoscalers.
  platforms:
`

const platform = `  - selector:
      matchLabels:
        os: %s
        arch: %s
    uri: %s/%s
    sha256: %s
    bin: %s
`

// manifest is what krew reads.
func manifest(version, base string, archives []archive) string {
	text := fmt.Sprintf(head, version)
	for _, a := range archives {
		text += fmt.Sprintf(platform, a.OS, a.Arch, strings.TrimRight(base, "/"), a.file(), a.Sum, a.binary())
	}
	return text
}
