// SPDX-License-Identifier: Apache-2.0

// Package validation checks a configuration against the workers of its Shoot. It is pure. Each
// message describes what to write.
package validation
