// SPDX-License-Identifier: Apache-2.0

package signs_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/signs"
)

func ownedBy(controller *bool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: controller}}
}

var _ = DescribeTable("A pod", func(safe string, owners []metav1.OwnerReference, want signs.Pin) {
	pod := &corev1.Pod{ObjectMeta: annotated(signs.SafeToEvict, safe)}
	if safe == "" {
		pod.Annotations = nil
	}
	pod.OwnerReferences = owners
	Expect(signs.PinOf(pod)).To(Equal(want))
},
	Entry("of a controller may be evicted", "", ownedBy(new(true)), signs.Unpinned),
	Entry("of a controller may be evicted if it says so", "true", ownedBy(new(true)), signs.Unpinned),
	Entry("of a controller may be evicted if what it says is unclear", "no", ownedBy(new(true)), signs.Unpinned),
	Entry("of a controller stays if it says so", "false", ownedBy(new(true)), signs.NotSafeToEvict),
	Entry("of none stays", "", nil, signs.NotReplicated),
	Entry("of an owner that is no controller stays", "", ownedBy(new(false)), signs.NotReplicated),
	Entry("of an owner that does not say whether it is its controller stays", "", ownedBy(nil), signs.NotReplicated),
	Entry("of none stays if what it says is unclear", "True", nil, signs.NotReplicated),
	Entry("of none may be evicted if it says so", "true", nil, signs.Unpinned),
	Entry("of none stays twice over", "false", nil, signs.NotSafeToEvict),
)
