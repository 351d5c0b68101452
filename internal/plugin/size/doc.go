// SPDX-License-Identifier: Apache-2.0

// Package size answers which reserve a MachineDeployment needs.
//
//	MachineDeployment -> Pool --+
//	flags ----------------------+-> Question -> Answer: table, picture, Reserve
//	CSV, cluster, Prometheus ---+
//
// [ReadPool] takes from a cluster what the flags leave open. Package sizing finds the answer. All of
// it is pure.
package size
