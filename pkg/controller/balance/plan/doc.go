// SPDX-License-Identifier: Apache-2.0

// Package plan decides what the balance controller writes, from a View alone. It is pure, and its
// laws are those of package balance.
package plan
