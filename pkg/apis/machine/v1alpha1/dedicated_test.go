// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"math"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// run is a pod of the namespace shop that such an object controls, with a label.
func run(kind, name, label, value string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Labels: map[string]string{label: value},
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, Controller: ptr.To(true)}},
	}}
}

var _ = DescribeTable("Who may use a dedicated machine",
	func(owner machine.Owner, pod *corev1.Pod, may bool) { Expect(owner.Owns(pod)).To(Equal(may)) },
	Entry("all pods of a namespace", machine.Owner("ci,shop"), run("Job", "build", "", ""), true),
	Entry("not those of another one", machine.Owner("ci,shopping"), run("Job", "build", "", ""), false),
	Entry("pods of a StatefulSet", machine.Owner("shop/StatefulSet/db"), run("StatefulSet", "db", "", ""), true),
	Entry("not those of another kind of that name", machine.Owner("shop/StatefulSet/db"), run("Job", "db", "", ""), false),
	Entry("pods of a Deployment, by its ReplicaSet", machine.Owner("shop/Deployment/web"), run("ReplicaSet", "web-5d", "pod-template-hash", "5d"), true),
	Entry("not those of a Deployment whose name begins like it", machine.Owner("shop/Deployment/web"), run("ReplicaSet", "web-api-5d", "pod-template-hash", "5d"), false),
	Entry("pods of an Argo Rollout, by its ReplicaSet", machine.Owner("shop/Rollout/web"), run("ReplicaSet", "web-5d", "rollouts-pod-template-hash", "5d"), true),
	Entry("not those of a ReplicaSet that nothing runs", machine.Owner("shop/Deployment/web"), run("ReplicaSet", "web-5d", "", ""), false),
	Entry("not pods of a Deployment for a StatefulSet of that name", machine.Owner("shop/StatefulSet/web"), run("ReplicaSet", "web-5d", "pod-template-hash", "5d"), false),
)

var _ = Describe("Requests of other objects", func() {
	longest := strings.Repeat("r", 253)

	DescribeTable("are read from a MachineDeployment", func(text string, want machine.RequestedExcess) {
		Expect(machine.ParseRequestedExcess(text)).To(Equal(want))
		Expect(want.String()).To(Equal(text))
	},
		Entry("of a Reserve", "office-hours=3", machine.RequestedExcess{Reserve: "office-hours", Machines: 3}),
		Entry("of the longest name, and the most", longest+"=2147483647", machine.RequestedExcess{Reserve: longest, Machines: math.MaxInt32}),
	)

	It("dedicate machines to as many owners, with names as long, as there can be", func() {
		owner := machine.Owner(strings.Repeat("o", machine.MaxOwnerLength))
		all := slices.Repeat([]machine.Dedication{{Owner: owner, Machines: 2}}, machine.MaxDedications)
		Expect(machine.ParseDedications(machine.DedicationsText(all))).To(Equal(all))
		for _, text := range []string{machine.DedicationsText(append(all, all[0])), string(owner) + "o=2", "=2", "shop", "shop=-1", "shop=2147483648"} {
			_, err := machine.ParseDedications(text)
			Expect(err).To(HaveOccurred())
			Expect(len(err.Error())).To(BeNumerically("<", 300))
		}
	})
})
