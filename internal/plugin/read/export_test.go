// SPDX-License-Identifier: Apache-2.0

package read

// Slim removes what no reader needs.
var Slim = slimObject

// SetMost limits how many objects of a kind are read.
func SetMost(c *Clusters, n int) { c.most = n }
