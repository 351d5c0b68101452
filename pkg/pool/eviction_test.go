// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/pool"
)

func ownedByWeb(controller *bool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: controller}}
}

var _ = DescribeTable("A pod", func(safe string, owners []metav1.OwnerReference, want pool.Pin) {
	pod := &corev1.Pod{ObjectMeta: annotated(pool.SafeToEvict, safe)}
	if safe == "" {
		pod.Annotations = nil
	}
	pod.OwnerReferences = owners
	Expect(pool.PinOf(pod)).To(Equal(want))
},
	Entry("of a controller may be evicted", "", ownedByWeb(new(true)), pool.Unpinned),
	Entry("of a controller may be evicted with the annotation true", "true", ownedByWeb(new(true)), pool.Unpinned),
	Entry("of a controller may be evicted with an unknown value", "no", ownedByWeb(new(true)), pool.Unpinned),
	Entry("of a controller stays with the annotation false", "false", ownedByWeb(new(true)), pool.NotSafeToEvict),
	Entry("of none stays", "", nil, pool.NotReplicated),
	Entry("of an owner that is no controller stays", "", ownedByWeb(new(false)), pool.NotReplicated),
	Entry("of an owner without the field controller stays", "", ownedByWeb(nil), pool.NotReplicated),
	Entry("of none stays with an unknown value", "True", nil, pool.NotReplicated),
	Entry("of none may be evicted with the annotation true", "true", nil, pool.Unpinned),
	Entry("of none stays for both reasons", "false", nil, pool.NotSafeToEvict),
)
