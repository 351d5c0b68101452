// SPDX-License-Identifier: Apache-2.0

// Package policy makes a simulated API server reject what the manifests of this repository make a
// real one reject, by CustomResourceDefinitions and ValidatingAdmissionPolicies.
//
//	checks, err := policy.Load("../../kubernetes")
//	checks.Enforce(server)
//
// Defaults of a schema are not stored. Policies with parameters, match conditions or namespace
// selectors are an error.
package policy
