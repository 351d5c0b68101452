// SPDX-License-Identifier: Apache-2.0

// Command release builds everything that a release publishes, into one folder:
//
//	images/NAME.tar          an OCI layout for linux/amd64 and linux/arm64
//	sbom/                    what each image and the plugin are made of
//	evenkeel-VERSION.tgz     the Helm chart, with the digest of the image in its values
//	krew/                    the kubectl plugin for each platform, and its krew manifest
//	provenance.intoto.json   an in-toto statement (SLSA v1): what was built, from which commit, with what
//	SHA256SUMS               the checksums of all of these
//
// It publishes nothing unless a repository to push the images to is given. See RELEASE.md.
//
//	go run . -root ../.. -version v0.1.0 -base NAME@sha256:... -url https://example.com/releases/v0.1.0
package main
