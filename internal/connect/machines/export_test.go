// SPDX-License-Identifier: Apache-2.0

package machines

// NewCodecs is newCodecs.
var NewCodecs = newCodecs
