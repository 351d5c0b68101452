// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestRights(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Rights")
}

const manifest = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: keeper, namespace: system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: machines, namespace: default}
rules:
- {apiGroups: [machine.sapcloud.io], resources: [machines, machines/status], verbs: [get, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: machines, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: machines}
subjects: [{kind: ServiceAccount, name: keeper, namespace: system}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: nodes}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [list]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nodes}
subjects: [{kind: ServiceAccount, name: keeper, namespace: system}]
`

// log has, of the keeper, four requests that were allowed, one twice, and one that was not; and one of another account.
const log = `
{"user":{"username":"system:serviceaccount:system:keeper"},"verb":"get","requestURI":"/x","objectRef":{"resource":"machines","namespace":"default","name":"a","apiGroup":"machine.sapcloud.io"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"user":{"username":"system:serviceaccount:system:keeper"},"verb":"get","requestURI":"/x","objectRef":{"resource":"machines","namespace":"default","name":"b","apiGroup":"machine.sapcloud.io"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"user":{"username":"system:serviceaccount:system:keeper"},"verb":"patch","requestURI":"/x","objectRef":{"resource":"machines","namespace":"default","apiGroup":"machine.sapcloud.io","subresource":"status"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"user":{"username":"system:serviceaccount:system:keeper"},"verb":"list","requestURI":"/api/v1/nodes?limit=500","objectRef":{"resource":"nodes","apiVersion":"v1"},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"user":{"username":"system:serviceaccount:system:keeper"},"verb":"get","requestURI":"/metrics?x=y","annotations":{"authorization.k8s.io/decision":"allow"}}
{"user":{"username":"system:serviceaccount:system:keeper"},"verb":"list","requestURI":"/x","objectRef":{"resource":"secrets","namespace":"default"},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"user":{"username":"system:serviceaccount:system:other"},"verb":"patch","requestURI":"/x","objectRef":{"resource":"machines","namespace":"default","apiGroup":"machine.sapcloud.io"}}
`

const (
	keeper   = "system/keeper"
	machines = "machines.machine.sapcloud.io"
)

func read() ([]Right, Log) {
	GinkgoHelper()
	granted, err := Granted(strings.NewReader(manifest))
	Expect(err).NotTo(HaveOccurred())
	seen, err := Read(strings.NewReader(strings.TrimSpace(log)), keeper)
	Expect(err).NotTo(HaveOccurred())
	return granted, seen
}

var _ = Describe("Rights", func() {
	It("are what roles give, where their binding says", func() {
		granted, _ := read()
		Expect(granted).To(ConsistOf(
			Right{keeper, "default", machines, "get"}, Right{keeper, "default", machines, "patch"},
			Right{keeper, "default", machines + "/status", "get"}, Right{keeper, "default", machines + "/status", "patch"},
			Right{keeper, "", "nodes", "list"}, Right{keeper, "", "/metrics", "get"}))
	})

	It("are used by what the log says that was allowed", func() {
		_, seen := read()
		Expect(seen.Used).To(ConsistOf(
			Right{keeper, "default", machines, "get"}, Right{keeper, "default", machines + "/status", "patch"},
			Right{keeper, "", "nodes", "list"}, Right{keeper, "", "/metrics", "get"}))
		Expect(seen.Refused).To(ConsistOf(Right{keeper, "default", "secrets", "list"}))
	})

	It("are complained about where they are missing, or too many", func() {
		granted, seen := read()
		Expect(Check(granted, seen, nil)).To(ConsistOf(
			"refused: system/keeper: list secrets in default",
			"granted and never used: system/keeper: patch machines.machine.sapcloud.io in default",
			"granted and never used: system/keeper: get machines.machine.sapcloud.io/status in default"))
	})

	It("are excused by a reason, which is needed", func() {
		granted, seen := read()
		seen.Refused = nil
		Expect(Check(granted, seen, []Excuse{{keeper, machines, "patch", "rare", false}, {keeper, machines + "/status", "get", "rarer", true}, {keeper, "nodes", "list", "chance", true}})).To(BeEmpty())
		Expect(Check(granted, seen, []Excuse{
			{keeper, machines, "patch", " ", false}, {keeper, machines + "/status", "get", "rarer", false}, {keeper, machines, "get", "r", false}, {keeper, "pods", "get", "r", true},
		})).To(ConsistOf(
			"excuse for system/keeper: patch machines.machine.sapcloud.io: has no reason",
			"excuse for system/keeper: get machines.machine.sapcloud.io: is used",
			"excuse for system/keeper: get pods: is not granted"))
	})

	It("in one namespace are not used in another, and everywhere is anywhere", func() {
		elsewhere := Log{Used: []Right{{keeper, "other", machines, "get"}}}
		Expect(Check([]Right{{keeper, "default", machines, "get"}}, elsewhere, nil)).To(HaveLen(1))
		Expect(Check([]Right{{keeper, "", machines, "get"}}, elsewhere, nil)).To(BeEmpty())
	})

	It("cannot be told where a binding has no role, or the log is cut", func() {
		_, err := Granted(strings.NewReader(manifest[strings.Index(manifest, "kind: RoleBinding")-len("apiVersion: rbac.authorization.k8s.io/v1\n"):]))
		Expect(err).To(MatchError(ContainSubstring("there is none")))
		_, err = Read(strings.NewReader(`{"user":{"username":"system:serviceaccount:system:keeper"`), keeper)
		Expect(err).To(MatchError(ContainSubstring("read audit log")))
	})
})
