// SPDX-License-Identifier: Apache-2.0

package gen_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/fake"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
)

// Projects that import our clients test with the fake clientset. It keeps fields of ours and those of machine-controller-manager's types.
func TestFakeClientset(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	pool := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: "garden"}}
	pool.Spec.Replicas = 3
	var client versioned.Interface = fake.NewSimpleClientset(pool, &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "garden"}})

	patched, err := client.MachineV1alpha1().MachineDeployments("garden").
		Patch(ctx, "pool", types.MergePatchType, []byte(`{"spec":{"excessReplicas":2}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(patched.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(2)))
	g.Expect(patched.Spec.Replicas).To(BeEquivalentTo(3))

	ctx, stop := context.WithCancel(ctx)
	factory := externalversions.NewSharedInformerFactory(client, 0)
	machines := factory.Machine().V1alpha1().Machines().Lister()
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer stop()
	factory.WaitForCacheSync(ctx.Done())
	found, err := machines.Machines("garden").Get("m")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Name).To(Equal("m"))
}
