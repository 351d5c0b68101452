// SPDX-License-Identifier: Apache-2.0

// Package policy makes a simulated API server reject what the CustomResourceDefinitions and
// ValidatingAdmissionPolicies of this repository reject.
//
//	checks, err := policy.Load("../../kubernetes")
//	checks.Enforce(server)
//
// Defaults of a schema are not stored. Policies with parameters, match conditions or namespace
// selectors are an error.
package policy
