// SPDX-License-Identifier: Apache-2.0

package plan

// Allocatable is tested apart from the template that it is a part of.
var Allocatable = allocatable
