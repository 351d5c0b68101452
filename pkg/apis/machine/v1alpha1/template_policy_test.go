// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// timeouts are the durations of a template.
var timeouts = []string{"creationTimeout", "drainTimeout", "healthTimeout", "inPlaceUpdateTimeout", "machinePreserveTimeout"}

// templated has a value in its template.
func templated(value any, path ...string) *unstructured.Unstructured {
	u := plain("new")
	Expect(unstructured.SetNestedField(u.Object, value, append([]string{"spec", "template"}, path...)...)).To(Succeed())
	return u
}

// readable reports whether clients can decode an object.
func readable(u *unstructured.Unstructured) error {
	text, err := u.MarshalJSON()
	Expect(err).NotTo(HaveOccurred())
	return json.Unmarshal(text, &machine.MachineDeployment{})
}

var _ = Describe("The template policy", Ordered, func() {
	var door *door

	BeforeAll(func() { door = openDoor("../../../../kubernetes/policies/machinedeployment-template.yaml") })

	It("refuses the durations that clients cannot read, and no others", func() {
		for _, name := range timeouts {
			for _, text := range []string{
				"2h", "1h30m", "0", "-0", "+1.5h", ".5s", "1.s", "20m0s", "100ms", "1us", "1µs", "1μs", "2562047h",
				"", "2", "1d", "2 h", "2h ", "2H", "h", ".h", "1h1", "- 1h", "two hours", "2562048h", "9999999999999999999h", "1h\n",
			} {
				u := templated(text, "spec", name)
				Expect(door.refuses(u, nil) != "").To(Equal(readable(u) != nil), "%s: %q", name, text)
			}
		}
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			u := templated(rapid.StringMatching(`[-+]?([0-9]{0,3}[.]?[0-9]{0,2}(ns|us|ms|s|m|h|d)?){0,3}`).Draw(t, "text"), "spec", "drainTimeout")
			if refused := door.refuses(u, nil) != ""; refused != (readable(u) != nil) {
				t.Fatalf("refused: %v, readable: %v", refused, readable(u))
			}
		})
	})

	DescribeTable("refuses labels and annotations that clients cannot read, and no others", func(path ...string) {
		for _, value := range []any{"text", "", nil, int64(2), 1.5, true, []any{}, map[string]any{}} {
			u := templated(map[string]any{"a": "b", "key": value}, path...)
			Expect(door.refuses(u, nil) != "").To(Equal(readable(u) != nil), "%v", value)
		}
		Expect(door.refuses(templated(nil, path...), nil)).To(BeEmpty())
	},
		Entry(nil, "metadata", "labels"), Entry(nil, "metadata", "annotations"),
		Entry(nil, "spec", "nodeTemplate", "metadata", "labels"), Entry(nil, "spec", "nodeTemplate", "metadata", "annotations"),
	)

	DescribeTable("refuses other metadata that clients cannot read, and of what they can read only owners and managed fields", func(path ...string) {
		for _, key := range []string{
			"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "deletionGracePeriodSeconds", "creationTimestamp", "deletionTimestamp",
			"finalizers", "ownerReferences", "managedFields", "other",
		} {
			for _, value := range []any{
				nil, "text", "", int64(2), 1.5, true, "2026-01-31T08:00:00Z", "2026-01-31T08:00:00.5+01:00", "2026-01-31T8:00:00,5Z", "2026-01-31t08:00:00z", "2026-13-31T08:00:00Z", "2026-01-31", []any{}, []any{"a", nil}, []any{int64(2)}, map[string]any{}, map[string]any{"a": "b"},
			} {
				u := templated(map[string]any{"labels": map[string]any{"a": "b"}, key: value}, path...)
				Expect(door.refuses(u, nil) != "").To(Equal(readable(u) != nil), "%s: %v", key, value)
			}
		}
		for _, key := range []string{"ownerReferences", "managedFields"} {
			Expect(door.refuses(templated(map[string]any{key: []any{map[string]any{}}}, path...), nil)).To(ContainSubstring("leave out all other fields"), key)
		}
	},
		Entry(nil, "metadata"), Entry(nil, "spec", "nodeTemplate", "metadata"),
	)

	It("refuses times of taints that clients cannot read, and no others", func() {
		for _, at := range []any{nil, "2026-01-31T08:00:00Z", "2026-01-31T08:00:00.123+01:00", "2026-01-31t08:00:00z", "2026-01-31T08:00:00z"} {
			u := templated([]any{map[string]any{"key": "a", "effect": "NoSchedule"}, map[string]any{"key": "b", "effect": "NoSchedule", "timeAdded": at}}, "spec", "nodeTemplate", "spec", "taints")
			Expect(door.refuses(u, nil) != "").To(Equal(readable(u) != nil), "%v", at)
		}
	})

	DescribeTable("refuses amounts in a strategy that clients cannot read, and no others, when the strategy changes", func(path ...string) {
		rolling := func(amount any) *unstructured.Unstructured {
			u := plain("new")
			Expect(unstructured.SetNestedField(u.Object, amount, append([]string{"spec", "strategy"}, path...)...)).To(Succeed())
			return u
		}
		for _, amount := range []any{nil, int64(0), int64(1), int64(2147483647), "25%", "", int64(2147483648), int64(-2147483649), 3e9} {
			u := rolling(amount)
			Expect(door.refuses(u, nil) != "").To(Equal(readable(u) != nil), "%v", amount)
		}
		Expect(door.refuses(rolling(int64(2147483648)), rolling(int64(1)))).To(ContainSubstring("at most 2147483647"))
		wrong, scaled := rolling(int64(2147483648)), rolling(int64(2147483648))
		Expect(unstructured.SetNestedField(scaled.Object, int64(3), "spec", "replicas")).To(Succeed())
		Expect(door.refuses(scaled, wrong)).To(BeEmpty())
	},
		Entry(nil, "rollingUpdate", "maxSurge"), Entry(nil, "rollingUpdate", "maxUnavailable"), Entry(nil, "inPlaceUpdate", "maxSurge"), Entry(nil, "inPlaceUpdate", "maxUnavailable"),
	)

	It("is there because one such object keeps clients from reading a list", func() {
		list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*plain("good"), *templated("7d", "spec", "drainTimeout")}}
		list.SetGroupVersionKind(machine.SchemeGroupVersion.WithKind("MachineDeploymentList"))
		text, err := list.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(text, &machine.MachineDeploymentList{})).NotTo(Succeed())
	})

	It("explains the correct syntax in its message", func() {
		Expect(door.refuses(templated("7d", "spec", "drainTimeout"), nil)).To(ContainSubstring("for example 48h"))
		Expect(door.refuses(templated(map[string]any{"team": int64(7)}, "metadata", "labels"), nil)).To(ContainSubstring("in quotes"))
		Expect(door.refuses(templated("yesterday", "metadata", "creationTimestamp"), nil)).To(ContainSubstring("needs only labels and annotations"))
		late := []any{map[string]any{"key": "a", "effect": "NoSchedule", "timeAdded": "2026-01-31t08:00:00z"}}
		Expect(door.refuses(templated(late, "spec", "nodeTemplate", "spec", "taints"), nil)).To(ContainSubstring("leave out timeAdded"))
	})

	It("checks a template only when it changes", func() {
		wrong := templated("7d", "spec", "drainTimeout")
		scaled := wrong.DeepCopy()
		Expect(unstructured.SetNestedField(scaled.Object, int64(3), "spec", "replicas")).To(Succeed())
		Expect(door.refuses(scaled, wrong)).To(BeEmpty())
		Expect(door.refuses(wrong, plain("old"))).NotTo(BeEmpty())
		Expect(door.refuses(plain("new"), wrong)).To(BeEmpty())
		Expect(door.refuses(plain("new"), nil)).To(BeEmpty())
	})
})
