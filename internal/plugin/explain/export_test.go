// SPDX-License-Identifier: Apache-2.0

package explain

// Place is a rank for people.
var Place = ordinal
