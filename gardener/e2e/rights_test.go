// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/evenkeel/evenkeel/internal/rights"
)

const (
	extensionAccount = extensionNamespace + "/" + extensionProgram
	admissionAccount = admissionNamespace + "/" + admissionProgram

	olderServers = "An API server that cannot send the initial list in a watch is asked for a list."
	rotation     = "Certificates are replaced after weeks, and the old ones deleted."
	bound        = "The API server asks for it when a role is bound, and no request has this verb."
	repeated     = "An event that occurs again is patched."
)

// Rights that the specs do not use, and why they are granted.
var (
	extensionExcuses = []rights.Excuse{
		{Account: extensionAccount, Resource: "extensions.extensions.gardener.cloud", Verb: "list", Reason: olderServers},
		{Account: extensionAccount, Resource: "clusters.extensions.gardener.cloud", Verb: "list", Reason: olderServers},
		{Account: extensionAccount, Resource: "namespaces", Verb: "list", Reason: olderServers},
		{Account: extensionAccount, Resource: "secrets", Verb: "delete", Reason: rotation},
		{Account: extensionAccount, Resource: "clusterroles.rbac.authorization.k8s.io", Verb: "bind", Reason: bound},
		{Account: extensionAccount, Resource: "events", Verb: "patch", Reason: repeated, Sometimes: true},
	}
	admissionExcuses = []rights.Excuse{
		{Account: admissionAccount, Resource: "secrets", Verb: "delete", Reason: rotation},
		{Account: admissionAccount, Resource: "events", Verb: "patch", Reason: repeated, Sometimes: true},
	}
)

// rightsProblems compares what charts grant to an account with its requests in the audit log.
func rightsProblems(account, namespace string, excuses []rights.Excuse, folders ...string) []string {
	GinkgoHelper()
	var texts []io.Reader
	for _, folder := range folders {
		texts = append(texts, strings.NewReader(render(folder, account, namespace).FileContent("access.yaml")+"\n---\n"))
	}
	granted := must(rights.Granted(io.MultiReader(texts...)))
	Expect(granted).NotTo(BeEmpty())
	log := must(os.Open(seedCluster.AuditLog()))
	defer log.Close()
	requests := must(rights.Read(log, namespace+"/"+account))
	Expect(requests.Used).NotTo(BeEmpty())
	return rights.Check(granted, requests, excuses)
}
