// SPDX-License-Identifier: Apache-2.0

// Package picture draws what a week needs, and what is kept for it, as SVG that loads nothing else.
// Lines and dashes repeat what colors say.
package picture
