// SPDX-License-Identifier: Apache-2.0

// Package ui looks at the plugin's page in Chromium without a window, with overviews that are made
// up and change. `go test ./test/ui -pictures=folder` also takes a picture of every scene.
package ui
