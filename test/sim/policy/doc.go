// SPDX-License-Identifier: Apache-2.0

// Package policy makes a simulated API server reject what the manifests of this repository make a
// real one reject: by the schemas and rules (CEL) of CustomResourceDefinitions, and by
// ValidatingAdmissionPolicies. It reads the files themselves and compiles them with the API
// server's own libraries.
//
//	checks, err := policy.Load("../../kubernetes")
//	checks.Enforce(server)
//
// It omits defaults of a schema, which the checks see but which are not stored. It returns an error
// for policies with parameters, match conditions or namespace selectors.
package policy
