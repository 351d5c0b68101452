// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener/gardener/pkg/utils/managedresources"

	"github.com/evenkeel/evenkeel/gardener/charts"
	"github.com/evenkeel/evenkeel/gardener/pkg/additions"
	"github.com/evenkeel/evenkeel/test/localcluster"
	"github.com/evenkeel/evenkeel/test/rights"
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
		{Account: extensionAccount, Resource: "deployments.apps", Verb: "list", Reason: olderServers},
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

// Rights of machine-controller-manager that gardenlet does not grant and the extension does not add.
var missingOnSeed = []string{"clusters.extensions.gardener.cloud", "workers.extensions.gardener.cloud", "configmaps"}

// managerProblems compares what the extension grants to the manager of a Shoot with CapacityBuffers, on the seed and in the Shoot, with
// the manager's requests.
func (s *shoot) managerProblems(ctx context.Context) []string {
	GinkgoHelper()
	onSeed, inShoot := s.namespace+"/machine-controller-manager", metav1.NamespaceSystem+"/machine-controller-manager"
	granted := must(rights.Granted(s.rolesOnSeed(ctx), s.rolesInShoot(ctx)))
	Expect(granted).To(ContainElements(HaveField("Account", onSeed), HaveField("Account", inShoot)))
	requests, others := requestsOf(seedCluster, onSeed), requestsOf(targetCluster, inShoot)
	for _, refused := range requests.Refused {
		Expect(missingOnSeed).To(ContainElement(refused.Resource), refused.String())
	}
	// The account in the Shoot is that of Shoots in other stories, too: each story looks at refusals itself.
	return rights.Check(granted, rights.Log{Used: slices.Concat(requests.Used, others.Used)}, managerExcuses(onSeed, inShoot))
}

func managerExcuses(onSeed, inShoot string) (all []rights.Excuse) {
	for account, resources := range map[string][]string{
		onSeed:  {"reserves.autoscaling.evenkeel.dev"},
		inShoot: {"storageclasses.storage.k8s.io", "csidrivers.storage.k8s.io", "capacitybuffers.autoscaling.x-k8s.io", "podtemplates", "resourcequotas"},
	} {
		for _, resource := range resources {
			all = append(all, rights.Excuse{Account: account, Resource: resource, Verb: "list", Reason: olderServers, Sometimes: true})
		}
	}
	for _, resource := range []string{
		"resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io", "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io", "podgroups.scheduling.k8s.io",
	} {
		for _, verb := range []string{"list", "watch"} {
			all = append(all, rights.Excuse{Account: inShoot, Resource: resource, Verb: verb,
				Reason: "Read once a pod that waits claims devices or belongs to a PodGroup, or an excess names devices; the other end-to-end specs play this."})
		}
	}
	return append(all, rights.Excuse{Account: inShoot, Resource: "pods/status", Verb: "patch", Sometimes: true,
		Reason: "A pod is nominated for a machine that is kept for its workload; the other end-to-end specs play this."})
}

func requestsOf(cluster *localcluster.Cluster, account string) rights.Log {
	GinkgoHelper()
	log := must(os.Open(cluster.AuditLog()))
	defer log.Close()
	requests := must(rights.Read(log, account))
	Expect(requests.Used).NotTo(BeEmpty())
	return requests
}

// rolesOnSeed are the chart's roles for managers, and how the extension has bound them for this one.
func (s *shoot) rolesOnSeed(ctx context.Context) io.Reader {
	GinkgoHelper()
	texts := []string{render(charts.Extension, extensionProgram, extensionNamespace).FileContent("reserves.yaml")}
	for _, name := range []string{additions.ReservesName, additions.BuffersName} {
		binding := &rbacv1.RoleBinding{}
		Expect(seed.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, binding)).To(Succeed())
		binding.TypeMeta = metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}
		texts = append(texts, string(must(yaml.Marshal(binding))))
	}
	return strings.NewReader(strings.Join(texts, "\n---\n"))
}

// rolesInShoot are those in the ManagedResource.
func (s *shoot) rolesInShoot(ctx context.Context) io.Reader {
	GinkgoHelper()
	var texts []string
	for _, object := range must(managedresources.GetObjects(ctx, seed, s.namespace, additions.Name)) {
		texts = append(texts, string(must(yaml.Marshal(object))))
	}
	return strings.NewReader(strings.Join(texts, "\n---\n"))
}
