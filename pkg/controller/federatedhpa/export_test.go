// SPDX-License-Identifier: Apache-2.0

package federatedhpa

// What tests of this package call by itself.
var (
	LocalOf    = localOf
	Kubeconfig = kubeconfig
)
