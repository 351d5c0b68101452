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
	Entry("of a controller may be evicted if it says so", "true", ownedByWeb(new(true)), pool.Unpinned),
	Entry("of a controller may be evicted if what it says is unclear", "no", ownedByWeb(new(true)), pool.Unpinned),
	Entry("of a controller stays if it says so", "false", ownedByWeb(new(true)), pool.NotSafeToEvict),
	Entry("of none stays", "", nil, pool.NotReplicated),
	Entry("of an owner that is no controller stays", "", ownedByWeb(new(false)), pool.NotReplicated),
	Entry("of an owner that does not say whether it is its controller stays", "", ownedByWeb(nil), pool.NotReplicated),
	Entry("of none stays if what it says is unclear", "True", nil, pool.NotReplicated),
	Entry("of none may be evicted if it says so", "true", nil, pool.Unpinned),
	Entry("of none stays twice over", "false", nil, pool.NotSafeToEvict),
)
