// SPDX-License-Identifier: Apache-2.0

// Package picture draws what a week needs, and what is kept for it, as SVG: a file without scripts,
// fonts or anything else to load, with colors for light and dark. Colors say nothing that lines and
// dashes do not.
package picture
