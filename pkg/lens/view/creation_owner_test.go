// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	machinelisters "github.com/gardener/machine-controller-manager/pkg/client/listers/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/test/fixture"
)

var _ = Describe("The MachineDeployment of a Machine", func() {
	owned := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
	}
	DescribeTable("is found by way of its MachineSet", func(m *v1alpha1.Machine, found bool) {
		store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		for name, owner := range map[string][]metav1.OwnerReference{"set": owned("MachineDeployment", "pool"), "alone": nil, "odd": owned("Other", "x")} {
			Expect(store.Add(&v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(name), OwnerReferences: owner}})).To(Succeed())
		}
		name, is := view.OwnedThrough(machinelisters.NewMachineSetLister(store))(ns, m)
		Expect(is).To(Equal(found))
		if found {
			Expect(name).To(Equal(types.NamespacedName{Namespace: ns, Name: "pool"}))
		}
	},
		Entry("of its own", ownedBy(owned("MachineSet", "set")), true),
		Entry("no owner", ownedBy(nil), false),
		Entry("another kind of owner", ownedBy(owned("Other", "set")), false),
		Entry("no such MachineSet", ownedBy(owned("MachineSet", "gone")), false),
		Entry("a MachineSet that stands alone", ownedBy(owned("MachineSet", "alone")), false),
		Entry("a MachineSet of another kind of owner", ownedBy(owned("MachineSet", "odd")), false),
		Entry("another MachineSet of that name", ownedBy([]metav1.OwnerReference{{Kind: "MachineSet", Name: "set", UID: "older", Controller: ptr.To(true)}}), false),
	)
})

func ownedBy(owners []metav1.OwnerReference) *v1alpha1.Machine {
	return fixture.Machine("m", func(m *v1alpha1.Machine) { m.OwnerReferences = owners })
}
