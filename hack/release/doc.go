// SPDX-License-Identifier: Apache-2.0

// Command release builds everything that a release publishes into one folder, and publishes it only
// if a repository for the images is given. See RELEASE.md.
//
//	go run . -root ../.. -version v0.1.0 -base NAME@sha256:... -url https://example.com/releases/v0.1.0
package main
