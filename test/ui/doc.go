// SPDX-License-Identifier: Apache-2.0

// Package ui looks at the plugin's page in a Chromium without window, with made-up overviews. `go
// test ./test/ui -pictures=folder` takes a picture of every scene.
package ui
