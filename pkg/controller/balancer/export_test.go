// SPDX-License-Identifier: Apache-2.0

package balancer

// What tests look at apart from the whole.
var (
	OnlyReports = onlyReports
	Requests    = requests
	StripPod    = stripPod
)
