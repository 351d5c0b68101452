// SPDX-License-Identifier: Apache-2.0

package loop

// NewFair is newFair.
var NewFair = newFair
