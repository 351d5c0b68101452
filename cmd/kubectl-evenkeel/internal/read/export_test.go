// SPDX-License-Identifier: Apache-2.0

package read

// Slim takes away what nobody looks at.
var Slim = slim
