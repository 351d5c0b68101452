// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	. "github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	balancerapi "github.com/evenkeel/evenkeel/pkg/apis/balancer/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// door has the definitions of this repository.
func door() Validator {
	GinkgoHelper()
	d := Validator{}
	for file, kind := range map[string]schema.GroupVersionKind{
		"crds/machine.sapcloud.io_machinedeployments":                     api.SchemeGroupVersion.WithKind("MachineDeployment"),
		"crds/balancer.x-k8s.io_balancers":                                balancerapi.SchemeGroupVersion.WithKind("Balancer"),
		"crds/autoscaling.evenkeel.dev_federatedhorizontalpodautoscalers": autoscaling.SchemeGroupVersion.WithKind("FederatedHorizontalPodAutoscaler"),
		"crds/autoscaling.evenkeel.dev_reserves":                          autoscaling.SchemeGroupVersion.WithKind("Reserve"),
		"optional-crds/autoscaling.x-k8s.io_capacitybuffers":              v1beta1.SchemeGroupVersion.WithKind("CapacityBuffer"),
	} {
		text, err := os.ReadFile("../../../kubernetes/" + file + ".yaml")
		Expect(err).NotTo(HaveOccurred())
		d[kind] = &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.UnmarshalStrict(text, d[kind])).To(Succeed())
	}
	return d
}

// after are objects with a change, or what is wrong with it.
func after(o Objects, text string) (Objects, error) {
	changes, err := ParseChanges(strings.NewReader(text), Namespaces{Control: fixture.Namespace, Target: "shop"})
	if err != nil {
		return o, err
	}
	for _, c := range changes {
		if o, err = o.Apply(c, door()); err != nil {
			return o, err
		}
	}
	return o, nil
}

func target(name string) string {
	return "{name: " + name + ", scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: " + name + "}}"
}

var _ = Describe("A change", func() {
	It("contains only what differs: the rest stays, null removes, lists are replaced", func() {
		o := shop(1, 1)
		pool(o, "p", 2, 1)
		changed, err := after(*o, patched("MachineDeployment", "p", "spec: {replicas: 5, excessReplicas: null}")+"---\n"+
			patched("Balancer", "shop", "spec: {targets: ["+target("b")+", "+target("c")+"]}"))
		Expect(err).NotTo(HaveOccurred())
		d := changed.Deployments[0]
		Expect(d.Spec.Replicas).To(BeEquivalentTo(5))
		Expect(d.Spec.ExcessReplicas).To(BeNil())
		Expect(d.Annotations).To(Equal(o.Deployments[0].Annotations))
		Expect(d.Spec.Template).To(Equal(o.Deployments[0].Spec.Template))
		Expect(d.UID).To(Equal(o.Deployments[0].UID))
		Expect(changed.Balancers[0].Spec.Targets).To(HaveExactElements(HaveField("Name", "b"), HaveField("Name", "c")))
		Expect(o.Deployments[0].Spec.Replicas).To(BeEquivalentTo(2), "what was given stays as it was")
	})

	It("may be a new object, whole, with the defaults that a server gives", func() {
		changed, err := after(*stringAt(), patched("Balancer", "new", "spec: {selector: {matchLabels: {a: b}}, policy: {policyName: even}, targets: ["+target("b")+", "+target("c")+"]}"))
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Balancers).To(ConsistOf(And(HaveField("UID", Not(BeEmpty())), HaveField("Spec.Replicas", HaveValue(BeEquivalentTo(1))))))
	})

	It("may be many documents, in JSON too, and takes no status and no version", func() {
		changes, err := ParseChanges(strings.NewReader(`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineDeployment","metadata":{"name":"a","namespace":"x","resourceVersion":"3"},"status":{"replicas":9}}
---
# nothing
---
`+patched("MachineDeployment", "b", "")), Namespaces{Control: fixture.Namespace, Target: "shop"})
		Expect(err).NotTo(HaveOccurred())
		Expect(changes).To(HaveLen(2))
		Expect(changes[0].String()).To(Equal("MachineDeployment x/a"))
		Expect(changes[1].String()).To(Equal("MachineDeployment default/b"))
		changed, err := stringAt().Apply(changes[0], nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Deployments[0].Status.Replicas).To(BeZero())
		Expect(changed.Deployments[0].ResourceVersion).To(BeEmpty())
	})

	DescribeTable("is refused, in words that help",
		func(text, says string) {
			o := shop(1, 1)
			pool(o, "p", 2, 1)
			_, err := after(*o, text)
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("nothing", "", "the file is empty: write apiVersion, kind"),
		Entry("no YAML", "a: [", "read document 1"),
		Entry("no object", "3", "must be an object"),
		Entry("a key twice", "a: 1\na: 2", "already set"),
		Entry("another kind", "{apiVersion: v1, kind: Pod, metadata: {name: a}}", `plan does not support "Pod" of "v1": use a MachineDeployment`),
		Entry("another version", "{apiVersion: machine.sapcloud.io/v1, kind: MachineDeployment, metadata: {name: p}}", "plan does not support"),
		Entry("no name", "{apiVersion: machine.sapcloud.io/v1alpha1, kind: MachineDeployment}", "has no metadata.name"),
		Entry("a field that is none", patched("MachineDeployment", "p", "spec: {replica: 3}"), `unknown field "spec.replica"`),
		Entry("the wrong type", patched("MachineDeployment", "p", "spec: {replicas: many}"), "must be of type integer"),
		Entry("below 0", patched("MachineDeployment", "p", "spec: {excessReplicas: -1}"), "must be 0 or more"),
		Entry("bounds that are none", patched("MachineDeployment", "p", "metadata: {name: p, annotations: {evenkeel.machine.sapcloud.io/bounds: '5:1'}}"), "bounds"),
		Entry("an excess of a pool that is none", patched("MachineDeployment", "p", "spec: {template: {spec: {nodeTemplate: {metadata: {annotations: {evenkeel.machine.sapcloud.io/excess: lots}}}}}}"), "excess"),
		Entry("a mode that is none", patched("MachineDeployment", "p", "metadata: {name: p, annotations: {evenkeel.machine.sapcloud.io/balance: 'on'}}"), "balance"),
		Entry("an accounting that is none", patched("MachineDeployment", "p", "metadata: {name: p, annotations: {evenkeel.machine.sapcloud.io/accounting: inclusive}}"), "accounting"),
		Entry("a policy that is none", patched("Balancer", "shop", "spec: {policy: {policyName: best}}"), "policyName"),
		Entry("a new object that is not whole", patched("Balancer", "new", "spec: {replicas: 3}"), "Required value"),
	)

	DescribeTable("is refused where it is not known what there is",
		func(kind, resource string) {
			o := Objects{Target: true, Unread: map[string]string{resource: "no rights to list them"}}
			_, err := after(o, patched(kind, "x", "spec: {}"))
			Expect(err).To(MatchError(ContainSubstring("the " + resource + " of the cluster could not be read: no rights to list them")))
		},
		Entry(nil, "MachineDeployment", "machinedeployments"), Entry(nil, "Balancer", "balancers"), Entry(nil, "Reserve", "reserves"),
		Entry(nil, "CapacityBuffer", "capacitybuffers"), Entry(nil, "CapacityBuffer", "reserves"), Entry(nil, "CapacityBuffer", "nodes"), Entry(nil, "CapacityBuffer", "pods"),
	)

	It("is not held against a schema that could not be read, but against the grammar", func() {
		o := stringAt()
		pool(o, "p", 2, 1)
		changes, err := ParseChanges(strings.NewReader(patched("MachineDeployment", "p", "metadata: {name: p, annotations: {evenkeel.machine.sapcloud.io/bounds: x}}\nspec: {excessReplicas: -1}")), Namespaces{Control: fixture.Namespace, Target: "shop"})
		Expect(err).NotTo(HaveOccurred())
		_, err = o.Apply(changes[0], Validator{})
		Expect(err).To(MatchError(And(ContainSubstring("bounds"), Not(ContainSubstring("must be 0 or more")))))
	})
})
