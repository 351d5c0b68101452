// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/evenkeel/evenkeel/test/chart"
)

var _ = Describe("The chart", func() {
	It("is what kubernetes/deploy was rendered from (if not: make manifests)", func(ctx context.Context) {
		wanted := map[string]bool{}
		for _, part := range chart.Parts {
			text, err := part.Render(ctx, tools)
			Expect(err).NotTo(HaveOccurred())
			is, err := os.ReadFile(filepath.Join(root, part.File()))
			Expect(err).NotTo(HaveOccurred())
			Expect(string(is)).To(Equal(string(text)), part.File())
			wanted[part.File()] = true
		}
		files, err := filepath.Glob(filepath.Join(root, "kubernetes/deploy/*/*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		for _, file := range files {
			if name := strings.TrimPrefix(file, root+"/"); filepath.Base(name) != "kustomization.yaml" {
				Expect(wanted).To(HaveKey(name))
			}
		}
	})

	DescribeTable("renders what kustomize builds",
		func(ctx context.Context, folders []string, values ...string) {
			args := []string{}
			for _, value := range values {
				args = append(args, "--set", value)
			}
			byHelm := objects(template(ctx, args...))
			byKustomize := map[string]*unstructured.Unstructured{}
			for _, folder := range folders {
				text, err := tools.Kustomize(ctx, folder)
				Expect(err).NotTo(HaveOccurred())
				for name, o := range objects(text) {
					Expect(byKustomize).NotTo(HaveKey(name))
					byKustomize[name] = o
				}
			}
			Expect(byHelm).To(HaveLen(len(byKustomize)))
			for name, want := range byKustomize {
				Expect(byHelm).To(HaveKey(name))
				if want.GetKind() == "CustomResourceDefinition" { // nobody but helm uninstalls
					Expect(byHelm[name].GetAnnotations()).To(HaveKeyWithValue(keep, "keep"))
					unstructured.RemoveNestedField(byHelm[name].Object, "metadata", "annotations", keep)
				}
				Expect(byHelm[name].Object).To(Equal(want.Object), name)
			}
		},
		Entry("by default", []string{"kubernetes"}),
		Entry("for a Gardener", []string{"kubernetes", "kubernetes/deploy/gardener"}, "gardener.enabled=true"),
		Entry("for a cluster that has only Nodes", []string{"kubernetes/deploy/target-account"},
			"crds.install=false", "policies.install=false", "manager.enabled=false"),
		Entry("for a cluster that has no Nodes", []string{"kubernetes/deploy/manager", "kubernetes/deploy/metrics-reader"},
			"crds.install=false", "policies.install=false", "targetAccess.enabled=false"),
		Entry("for Balancers alone", []string{"kubernetes/deploy/balancer", "kubernetes/deploy/metrics-reader"},
			"crds.install=false", "policies.install=false", "manager.enabled=false", "targetAccess.enabled=false", "balancer.enabled=true"),
		Entry("for a hub", []string{"kubernetes/deploy/federation-hub", "kubernetes/deploy/metrics-reader"},
			"crds.install=false", "policies.install=false", "manager.enabled=false", "targetAccess.enabled=false", "federation.hub.enabled=true"),
		Entry("for a member", []string{"kubernetes/deploy/federation-member"},
			"crds.install=false", "policies.install=false", "manager.enabled=false", "targetAccess.enabled=false", "federation.member.enabled=true"),
	)

	DescribeTable("takes a controller's roles away with the controller",
		func(ctx context.Context, controllers string, gone ...string) {
			all := objects(template(ctx))
			some := objects(template(ctx, "--set", "manager.controllers={"+controllers+"}"))
			var missing []string
			for name, o := range all {
				if _, ok := some[name]; !ok && strings.HasSuffix(o.GetKind(), "Role") {
					missing = append(missing, o.GetName())
				}
			}
			Expect(missing).To(ConsistOf(gone))
			Expect(argsOf(some["Deployment kube-system/machine-controller-manager"])).To(ContainElement("--controllers=" + controllers))
		},
		Entry("all but zones", "mcm,nodegroup,release", "evenkeel-balance", "evenkeel-balance-target", "evenkeel-reserves", "evenkeel-reserves-target",
			"evenkeel-capacitybuffer", "evenkeel-capacitybuffer-target"),
		Entry("only machines", "mcm", "evenkeel-nodegroup", "evenkeel-nodegroup-target",
			"evenkeel-release", "evenkeel-release-target", "evenkeel-balance", "evenkeel-balance-target", "evenkeel-reserves", "evenkeel-reserves-target",
			"evenkeel-capacitybuffer", "evenkeel-capacitybuffer-target"),
	)

	DescribeTable("lets the manager hold the lease that it takes",
		func(ctx context.Context, lease, controllers string) {
			role := objects(template(ctx, "--set", "manager.controllers={"+controllers+"}"))["Role default/evenkeel-manager"]
			rules, _, err := unstructured.NestedSlice(role.Object, "rules")
			Expect(err).NotTo(HaveOccurred())
			Expect(fmt.Sprint(rules)).To(ContainSubstring("resourceNames:[" + lease + "] resources:[leases] verbs:[get update]"))
		},
		Entry("with the controllers of the stock one", "machine-controller-manager", "mcm,balance"),
		Entry("beside a stock one", "evenkeel", "nodegroup,release,balance,reserves"),
	)

	It("installs the CRD of CapacityBuffers only if asked, since others install it, too", func(ctx context.Context) {
		const name = "CustomResourceDefinition /capacitybuffers.autoscaling.x-k8s.io"
		Expect(objects(template(ctx))).NotTo(HaveKey(name))
		crd := objects(template(ctx, "--set", "crds.install=false,crds.capacityBuffers=true"))[name]
		Expect(crd.GetAnnotations()).To(HaveKeyWithValue(keep, "keep"))
	})

	It("installs optional policies only if asked", func(ctx context.Context) {
		policies := func(args ...string) (names []string) {
			for name := range objects(template(ctx, args...)) {
				if strings.HasPrefix(name, "MutatingAdmissionPolicy") {
					names = append(names, name)
				}
			}
			return names
		}
		for value, name := range map[string]string{"nodeRegistration": "node-registration", "daemonSetToleration": "daemonset-toleration"} {
			Expect(policies("--set", "targetAccess."+value+"=true")).To(ConsistOf("MutatingAdmissionPolicy /"+name+".evenkeel.machine.sapcloud.io", "MutatingAdmissionPolicyBinding /"+name+".evenkeel.machine.sapcloud.io"))
		}
		Expect(policies()).To(BeEmpty())
	})

	It("is without fault for helm, as it is and with everything", func(ctx context.Context) {
		for _, args := range [][]string{nil, {"--values", everything}} {
			out, err := tools.Lint(ctx, args...)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(out)).To(And(ContainSubstring("0 chart(s) failed"), Not(ContainSubstring("[WARNING]"))))
		}
	})

	DescribeTable("refuses values that make no sense",
		func(ctx context.Context, value, mention string) {
			_, err := tools.Template(ctx, "--set", value)
			Expect(err).To(MatchError(And(ContainSubstring("schema"), ContainSubstring(mention))))
		},
		Entry("a word that is none", "manager.replica=2", "replica"),
		Entry("a controller that is none", "manager.controllers={mcm,balancr}", "controllers"),
		Entry("a controller that is part of another one", "manager.controllers={mcm,machinetaint}", "controllers"),
		Entry("no controllers", "manager.controllers=null", "controllers"),
		Entry("a flag that is none", "manager.extraArgs={kube-api-qps=1}", "extraArgs"),
		Entry("a port that is none", "nodeGroups.port=99999", "port"),
		Entry("a digest that is none", "image.digest=latest", "digest"),
		Entry("a namespace that is none", "machines.namespace=Shoot", "namespace"),
		Entry("a registry that is none", "federation.hub.registry=files", "registry"),
		Entry("a namespace of a member that is none", "federation.member.namespaces={Shop}", "namespaces"),
	)

	DescribeTable("refuses what a controller does that is left out",
		func(ctx context.Context, controllers, value string) {
			_, err := tools.Template(ctx, "--set", "manager.controllers={"+controllers+"}", "--set", value)
			Expect(err).To(MatchError(ContainSubstring("in manager.controllers")))
			Expect(template(ctx, "--set", "manager.enabled=false", "--set", "manager.controllers={"+controllers+"}", "--set", value)).NotTo(BeEmpty())
		},
		Entry("a server of node groups", "mcm,release,balance", "nodeGroups.tlsSecret=node-groups"),
		Entry("bounds from Gardener", "mcm,nodegroup,release", "gardener.enabled=true"),
	)

	It("lets the hub write workloads in a member only in namespaces that are listed", func(ctx context.Context) {
		_, err := tools.Template(ctx, "--set", "federation.member.enabled=true,federation.member.placement=true")
		Expect(err).To(MatchError(ContainSubstring("needs federation.member.namespaces")))
		for values, expected := range map[string][]string{
			"federation.member.enabled=true":                                                                     {},
			"federation.member.enabled=true,federation.member.namespaces={a,b}":                                  {},
			"federation.member.enabled=true,federation.member.namespaces={a,b},federation.member.placement=true": {"a", "b"},
		} {
			writable := []string{}
			for _, o := range objects(template(ctx, "--set", values+",manager.enabled=false,targetAccess.enabled=false")) {
				rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
				for _, rule := range rules {
					if text := fmt.Sprint(rule); strings.Contains(text, "deployments") && strings.Contains(text, "create") {
						writable = append(writable, o.GetNamespace())
					}
				}
			}
			Expect(writable).To(ConsistOf(expected), values)
		}
	})

	It("gives no account what is not named: no wildcard, no secret but in the clusters' namespace, no impersonation", func(ctx context.Context) {
		for name, o := range objects(template(ctx, "--values", everything)) {
			rules, _, err := unstructured.NestedSlice(o.Object, "rules")
			if err != nil || !strings.HasSuffix(o.GetKind(), "Role") {
				continue
			}
			for _, rule := range rules {
				text := fmt.Sprint(rule)
				Expect(text).NotTo(ContainSubstring("*"), name)
				for _, strong := range []string{"impersonate", "escalate", "bind", "pods/exec", "roles", "serviceaccounts"} {
					Expect(text).NotTo(ContainSubstring(strong), name)
				}
				if strings.Contains(text, "secrets") {
					Expect(o.GetKind()+" "+o.GetNamespace()).To(Equal("Role evenkeel-clusters"), name)
				}
			}
		}
	})

	It("has every release's cluster-wide roles by names of its own, where it is told to", func(ctx context.Context) {
		others := objects(template(ctx, "--set", "clusterRoleSuffix=-b,crds.install=false,policies.install=false,machines.namespace=b", "--namespace", "b"))
		for name := range objects(template(ctx, "--set", "crds.install=false,policies.install=false")) {
			Expect(others).NotTo(HaveKey(name))
		}
	})
})

// argsOf the process in a Deployment.
func argsOf(deployment *unstructured.Unstructured) []string {
	GinkgoHelper()
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	Expect(err).NotTo(HaveOccurred())
	at := slices.IndexFunc(containers, func(c any) bool {
		return slices.Contains(images, c.(map[string]any)["name"].(string))
	})
	args, _, err := unstructured.NestedStringSlice(containers[at].(map[string]any), "args")
	Expect(err).NotTo(HaveOccurred())
	return args
}
