// SPDX-License-Identifier: Apache-2.0

package connect

// NewCodecs is newCodecs.
var NewCodecs = newCodecs
