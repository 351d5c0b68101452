// SPDX-License-Identifier: Apache-2.0

// Package policy makes a simulated API server refuse what the manifests of this repository make a real one refuse: by the
// schemas and rules (CEL) of CustomResourceDefinitions, and by ValidatingAdmissionPolicies. It reads the very files and compiles
// them with the API server's own libraries.
//
//	checks, err := policy.Load("../../kubernetes")
//	checks.Enforce(server)
//
// It leaves out: defaults of a schema, which are seen by the checks and not stored; parameters, match conditions and namespace
// selectors of a policy, of which an error says that they are not known here.
package policy
