// SPDX-License-Identifier: Apache-2.0

// Package size answers which reserve a MachineDeployment needs, by package sizing. [ReadPool] takes
// from a cluster what the flags leave open.
package size
