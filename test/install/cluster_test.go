// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	syaml "sigs.k8s.io/yaml"
)

// monitoring has the API server take what Prometheus' operator reads, whatever is in it.
const monitoring = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ServiceMonitor, plural: servicemonitors, singular: servicemonitor}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prometheusrules.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: PrometheusRule, plural: prometheusrules, singular: prometheusrule}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// pool is a MachineDeployment.
const pool = `
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {name: kept, namespace: default}
spec:
  replicas: 0
  selector: {matchLabels: {name: kept}}
  template:
    metadata: {labels: {name: kept}}
    spec: {class: {kind: MachineClass, name: none}}
`

// in is a YAML stream of these objects.
func in(all map[string]*unstructured.Unstructured) []byte {
	GinkgoHelper()
	var text []byte
	for _, name := range slices.Sorted(maps.Keys(all)) {
		one, err := syaml.Marshal(all[name].Object)
		Expect(err).NotTo(HaveOccurred())
		text = append(append(text, "---\n"...), one...)
	}
	return text
}

// pinned is a copy of the chart as a release packs it, with an image whose digest consists of one digit.
func pinned(digit string) string {
	GinkgoHelper()
	folder := filepath.Join(GinkgoT().TempDir(), "evenkeel")
	Expect(exec.Command("cp", "-RL", root+"/charts/evenkeel", folder).Run()).To(Succeed())
	file := filepath.Join(folder, "values.yaml")
	values, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	text := strings.Replace(string(values), `digest: ""`, "digest: sha256:"+strings.Repeat(digit, 64), 1)
	Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	return folder
}

// sure runs kubectl, which has to succeed.
func sure(ctx context.Context, input []byte, args ...string) string {
	GinkgoHelper()
	out, err := kubectl(ctx, input, args...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

var _ = Describe("On an API server", Ordered, func() {
	BeforeAll(func(ctx context.Context) {
		out, err := helm(ctx, "install", "evenkeel", root+"/charts/evenkeel", "--namespace", "kube-system", "--take-ownership")
		Expect(err).NotTo(HaveOccurred(), out)
	})

	It("what helm installed, what helm renders and what kustomize builds are the same", func(ctx context.Context) {
		built, err := tools.Kustomize(ctx, "kubernetes")
		Expect(err).NotTo(HaveOccurred())
		all := objects(built)
		for _, text := range [][]byte{in(all), template(ctx)} {
			out, err := kubectl(ctx, text, "diff", "--server-side", "--force-conflicts", "-f", "-")
			Expect(err).NotTo(HaveOccurred(), out)
		}
		replicas := "Deployment kube-system/machine-controller-manager"
		Expect(unstructured.SetNestedField(all[replicas].Object, int64(3), "spec", "replicas")).To(Succeed())
		out, err := kubectl(ctx, in(all), "diff", "--server-side", "--force-conflicts", "-f", "-")
		Expect(err).To(HaveOccurred(), "a difference would be seen")
		Expect(out).To(ContainSubstring("replicas: 3"))
	})

	It("everything is accepted", func(ctx context.Context) {
		sure(ctx, []byte(monitoring), "apply", "-f", "-")
		sure(ctx, nil, "wait", "--for=condition=Established", "crd/servicemonitors.monitoring.coreos.com", "crd/prometheusrules.monitoring.coreos.com", "--timeout=20s")
		all := objects(template(ctx, "--values", everything))
		sure(ctx, nil, "create", "namespace", "shops")
		for name, o := range all {
			// A dry run leaves no namespace behind for what comes after it.
			if o.GetKind() == "Namespace" || !slices.Contains([]string{"", "kube-system"}, o.GetNamespace()) {
				o.SetNamespace(strings.Replace(o.GetNamespace(), "shoot--a--b", "default", 1))
				if o.GetKind() == "Namespace" || o.GetNamespace() == "evenkeel-clusters" {
					delete(all, name)
				}
			}
		}
		out := sure(ctx, in(all), "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-")
		Expect(strings.Count(out, "serverside-applied")).To(Equal(len(all)))
	})

	It("its pods are restricted, by the standard of that name", func(ctx context.Context) {
		sure(ctx, nil, "create", "namespace", "strict")
		sure(ctx, nil, "label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted")
		count := 0
		for name, o := range objects(template(ctx, "--values", everything)) {
			if o.GetKind() != "Deployment" {
				continue
			}
			count++
			refuse := func(damage func(pod map[string]any)) string {
				pod, _, err := unstructured.NestedMap(o.Object, "spec", "template")
				Expect(err).NotTo(HaveOccurred())
				// The API server here makes no accounts, and looks for no priority classes but its own.
				unstructured.RemoveNestedField(pod, "spec", "serviceAccountName")
				pod["apiVersion"], pod["kind"], pod["metadata"] = "v1", "Pod", map[string]any{"name": "p", "namespace": "strict"}
				damage(pod)
				text, err := syaml.Marshal(pod)
				Expect(err).NotTo(HaveOccurred())
				out, err := kubectl(ctx, text, "create", "--dry-run=server", "-f", "-")
				if err == nil {
					return ""
				}
				return out
			}
			Expect(refuse(func(map[string]any) {})).To(BeEmpty(), name)
			Expect(refuse(func(pod map[string]any) {
				Expect(unstructured.SetNestedField(pod, false, "spec", "securityContext", "runAsNonRoot")).To(Succeed())
			})).To(ContainSubstring("violates PodSecurity"), name)
		}
		Expect(count).To(Equal(3))
	})

	It("an upgrade as documented runs the image of the new chart, and keeps values", func(ctx context.Context) {
		_, section, _ := strings.Cut(page("install.md"), "\n## Upgrade\n")
		documented := regexp.MustCompile(`helm upgrade evenkeel charts/evenkeel --namespace kube-system (.*)`).FindStringSubmatch(section)
		Expect(documented).To(HaveLen(2))
		release := []string{"released", pinned("a"), "--namespace", "released"}
		out, err := helm(ctx, append(append([]string{"install"}, release...), "--create-namespace", "--set",
			"crds.install=false,policies.install=false,machines.namespace=released,clusterRoleSuffix=-released,manager.replicas=3")...)
		Expect(err).NotTo(HaveOccurred(), out)
		DeferCleanup(func(ctx context.Context) {
			out, err := helm(ctx, "uninstall", "released", "--namespace", "released")
			Expect(err).NotTo(HaveOccurred(), out)
		})
		release[1] = pinned("b")
		out, err = helm(ctx, append(append([]string{"upgrade"}, release...), strings.Fields(documented[1])...)...)
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(sure(ctx, nil, "get", "deployment", "machine-controller-manager", "-n", "released", "-o", "jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image}")).
			To(Equal("3 evenkeel/machine-controller-manager@sha256:" + strings.Repeat("b", 64)))
	})

	It("an upgrade changes what it is told to, and CRDs and machines outlive the release", func(ctx context.Context) {
		sure(ctx, []byte(pool), "create", "-f", "-")
		out, err := helm(ctx, "upgrade", "evenkeel", root+"/charts/evenkeel", "--namespace", "kube-system", "--set", "manager.controllers={mcm}")
		Expect(err).NotTo(HaveOccurred(), out)
		roles := sure(ctx, nil, "get", "roles", "-n", "default", "-o", "name")
		Expect(roles).To(And(ContainSubstring("evenkeel-mcm"), Not(ContainSubstring("evenkeel-balance"))))
		out, err = helm(ctx, "uninstall", "evenkeel", "--namespace", "kube-system")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(sure(ctx, nil, "get", "machinedeployment", "kept", "-o", "name")).To(ContainSubstring("kept"))
		Expect(sure(ctx, nil, "get", "clusterroles,roles,deployments,serviceaccounts", "-A", "-l", "app.kubernetes.io/name=evenkeel", "-o", "name")).
			NotTo(ContainSubstring("/"), "nothing else is left")
	})
})
