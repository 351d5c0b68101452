// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
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
