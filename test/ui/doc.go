// SPDX-License-Identifier: Apache-2.0

// Package ui looks at the plugin's page in a real browser: Chromium without a window, driven over
// the DevTools protocol. The page shows overviews that are made up here and change while it is
// open.
//
// `go test ./test/ui -pictures=folder` also takes pictures of every scene, for a person to look at.
package ui
