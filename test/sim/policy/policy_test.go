// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/policy"
)

func TestPolicy(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Policy")
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: machines.machine.sapcloud.io}
spec:
  group: machine.sapcloud.io
  names: {kind: Machine, plural: machines}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, default: 1}
            x-kubernetes-validations:
            - {rule: self.size < 9, message: too large}
            - {rule: self.size >= oldSelf.size, message: it grows only}
`

const rules = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: odd}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [machine.sapcloud.io], apiVersions: ["*"], operations: [CREATE], resources: [machines]}
  validations:
  - {expression: object.metadata.name != 'odd', reason: Forbidden, message: an odd name}
`

const binding = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: odd}
spec: {policyName: odd, validationActions: [ACTION]}
`

func manifests(documents ...string) string {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	Expect(os.WriteFile(filepath.Join(folder, "all.yaml"), []byte(strings.Join(documents, "\n---\n")), 0o600)).To(Succeed())
	return folder
}

// put creates or changes a machine.
func put(s *sim.Server, name string, size any) error {
	all := dynamic.NewForConfigOrDie(s.Config()).Resource(schema.GroupVersionResource{Group: "machine.sapcloud.io", Version: "v1alpha1", Resource: "machines"}).Namespace("default")
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	if size != nil {
		u.Object["spec"] = map[string]any{"size": size}
	}
	u.SetAPIVersion("machine.sapcloud.io/v1alpha1")
	u.SetKind("Machine")
	u.SetName(name)
	is, err := all.Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = all.Create(context.Background(), u, metav1.CreateOptions{})
		return err
	}
	Expect(err).NotTo(HaveOccurred())
	u.SetResourceVersion(is.GetResourceVersion())
	_, err = all.Update(context.Background(), u, metav1.UpdateOptions{})
	return err
}

func enforced(documents ...string) *sim.Server {
	GinkgoHelper()
	s := sim.New(sim.Options{})
	DeferCleanup(s.Close)
	checks, err := policy.Load(manifests(documents...))
	Expect(err).NotTo(HaveOccurred())
	checks.Enforce(s)
	return s
}

var _ = Describe("Checks", func() {
	It("of a definition hold objects to its schema and rules, with its defaults", func() {
		s := enforced(definition)
		Expect(put(s, "m", "two")).To(Satisfy(apierrors.IsInvalid))
		Expect(put(s, "m", int64(9))).To(MatchError(ContainSubstring("too large")))
		Expect(put(s, "m", int64(2))).To(Succeed())
		Expect(put(s, "m", nil)).To(MatchError(ContainSubstring("it grows only")), "1 by default")
		Expect(put(s, "m", int64(3))).To(Succeed())
	})

	It("let stay what was wrong before", func() {
		s := sim.New(sim.Options{})
		DeferCleanup(s.Close)
		Expect(put(s, "m", int64(20))).To(Succeed())
		checks, err := policy.Load(manifests(strings.ReplaceAll(definition, "- {rule: self.size >= oldSelf.size, message: it grows only}", "")))
		Expect(err).NotTo(HaveOccurred())
		checks.Enforce(s)
		Expect(put(s, "m", int64(20))).To(Succeed())
		Expect(put(s, "m", int64(21))).To(MatchError(ContainSubstring("too large")))
	})

	It("of a policy count where a binding denies, for the writes that it names", func() {
		s := enforced(rules, strings.ReplaceAll(binding, "ACTION", "Deny"))
		Expect(put(s, "odd", nil)).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("an odd name"))))
		Expect(put(s, "even", nil)).To(Succeed())
		for _, documents := range [][]string{{rules}, {rules, strings.ReplaceAll(binding, "ACTION", "Audit")}, {strings.ReplaceAll(rules, "CREATE", "UPDATE"), strings.ReplaceAll(binding, "ACTION", "Deny")}} {
			Expect(put(enforced(documents...), "odd", nil)).To(Succeed())
		}
	})

	It("are not made of what is not known here", func() {
		selected := strings.ReplaceAll(rules, "  validations:", "    namespaceSelector: {}\n  validations:")
		_, err := policy.Load(manifests(selected, strings.ReplaceAll(binding, "ACTION", "Deny")))
		Expect(err).To(MatchError(ContainSubstring("ValidatingAdmissionPolicy odd")))
		_, err = policy.Load("no/such/folder")
		Expect(err).To(MatchError(os.ErrNotExist))
	})

	It("of this repository can all be made", func() {
		checks, err := policy.Load("../../../kubernetes")
		Expect(err).NotTo(HaveOccurred())
		Expect(len(checks)).To(BeNumerically(">=", 7), "six definitions and a policy")
	})

	DescribeTable("of this repository's policies count when a MachineDeployment is created, and when it is changed",
		func(patch string) {
			s := sim.New(sim.Options{})
			DeferCleanup(s.Close)
			checks, err := policy.Load("../../../kubernetes/policies")
			Expect(err).NotTo(HaveOccurred())
			checks.Enforce(s)
			all := dynamic.NewForConfigOrDie(s.Config()).Resource(schema.GroupVersionResource{Group: "machine.sapcloud.io", Version: "v1alpha1", Resource: "machinedeployments"}).Namespace("default")
			named := func(name, fields string) *unstructured.Unstructured {
				u := &unstructured.Unstructured{}
				Expect(yaml.Unmarshal([]byte(fields), &u.Object)).To(Succeed())
				u.SetAPIVersion("machine.sapcloud.io/v1alpha1")
				u.SetKind("MachineDeployment")
				u.SetName(name)
				return u
			}
			ctx := context.Background()
			_, err = all.Create(ctx, named("wrong", patch), metav1.CreateOptions{})
			Expect(err).To(Satisfy(apierrors.IsInvalid), "%v", err)
			_, err = all.Create(ctx, named("right", "{}"), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			_, err = all.Patch(ctx, "right", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			Expect(err).To(Satisfy(apierrors.IsInvalid), "%v", err)
		},
		Entry("that on annotations", `{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/bounds":"5:1"}}}`),
		Entry("that on templates", `{"spec":{"template":{"spec":{"drainTimeout":"7d"}}}}`),
	)
})
