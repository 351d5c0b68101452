// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
)

// owned is a MachineDeployment whose field others set and drop, as the API server keeps record of it.
type owned struct{ name string }

func (o owned) patch(ctx context.Context, kind types.PatchType, manager, patch string) {
	GinkgoHelper()
	_, err := machines().MachineDeployments("default").Patch(ctx, o.name, kind, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	Expect(err).NotTo(HaveOccurred())
}

func (o owned) manifest(spec string) string {
	return fmt.Sprintf(`{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineDeployment","metadata":{"name":%q,"namespace":"default"},"spec":%s}`, o.name, spec)
}

// apply is a GitOps tool's.
func (o owned) apply(ctx context.Context, spec string) {
	GinkgoHelper()
	o.patch(ctx, types.ApplyPatchType, "gitops", o.manifest(spec))
}

func (o owned) kubectlApply(spec string) {
	GinkgoHelper()
	out, err := kubectl(o.manifest(spec), "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred(), out)
}

// typed is a client that does not know the field, and scales.
func (o owned) typed(ctx context.Context, replicas int32) {
	GinkgoHelper()
	client := stock.NewForConfigOrDie(cluster.Config()).MachineV1alpha1().MachineDeployments("default")
	d, err := client.Get(ctx, o.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	d.Spec.Replicas = replicas
	_, err = client.Update(ctx, d, metav1.UpdateOptions{FieldManager: "autoscaler"})
	Expect(err).NotTo(HaveOccurred())
}

// look is one sync of the controller, as far as the field goes. It ends with the second, since managers are told apart by seconds.
func (o owned) look(ctx context.Context) plan.DeploymentChange {
	GinkgoHelper()
	d, err := machines().MachineDeployments("default").Get(ctx, o.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	change := plan.New(plan.View{Now: time.Now(), Deployment: d}).Deployment
	annotations, spec := map[string]any{}, map[string]any{}
	for _, key := range []string{machine.WantedExcessAnnotation, machine.ExcessOwnersAnnotation} {
		if value, is := change.Annotations[key]; is {
			if annotations[key] = value; value == "" {
				annotations[key] = nil
			}
		}
	}
	if change.Field != nil {
		spec["excessReplicas"] = *change.Field
	} else if change.AbandonedBy != "" {
		spec["excessReplicas"] = nil
	}
	metadata := map[string]any{"annotations": annotations}
	if change.Managed != nil {
		metadata["managedFields"] = change.Managed
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
	Expect(err).NotTo(HaveOccurred())
	o.patch(ctx, types.MergePatchType, "machine-controller-manager", string(patch))
	<-time.After(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	return change
}

var _ = Describe("The owner of spec.excessReplicas, as the API server records it", func() {
	begin := func(ctx context.Context, name string) owned {
		create(ctx, deployment(name))
		return owned{name}
	}

	It("lets go by a server-side apply, also of a field that was dropped and restored meanwhile", func(ctx context.Context) {
		o := begin(ctx, "applied")
		o.apply(ctx, `{"excessReplicas":2,"minReadySeconds":1}`)
		Expect(o.look(ctx).Annotations).To(HaveKeyWithValue(machine.ExcessOwnersAnnotation, ContainSubstring(`{"manager":"gitops","operation":"Apply"`)))
		o.typed(ctx, 4)
		Expect(o.look(ctx).Restored).To(BeTrue())
		Expect(o.look(ctx).Managed).NotTo(BeEmpty())
		Expect(o.look(ctx).Managed).To(BeEmpty(), "at rest")
		o.apply(ctx, `{"excessReplicas":2,"minReadySeconds":2}`)
		Expect(o.look(ctx).AbandonedBy).To(BeEmpty())
		o.typed(ctx, 5)
		Expect(o.look(ctx).Restored).To(BeTrue())
		o.look(ctx)
		o.apply(ctx, `{"minReadySeconds":2}`)
		Expect(o.look(ctx).AbandonedBy).To(Equal("gitops"))
		Expect(o.look(ctx)).To(BeZero(), "and stays so")
	})

	It("lets go by an apply that names nothing else", func(ctx context.Context) {
		o := begin(ctx, "nothing-else")
		o.apply(ctx, `{"excessReplicas":2}`)
		o.look(ctx)
		o.apply(ctx, `{}`)
		Expect(o.look(ctx).AbandonedBy).To(Equal("gitops"))
		Expect(o.look(ctx)).To(BeZero(), "and stays so")
	})

	It("lets go by an apply that names nothing else, at the second time if others wrote before the first", func(ctx context.Context) {
		o := begin(ctx, "nothing-else-beside-others")
		o.apply(ctx, `{"excessReplicas":2}`)
		o.look(ctx)
		o.typed(ctx, 4)
		Expect(o.look(ctx).Restored).To(BeTrue(), "the client that does not know the field dropped it")
		Expect(o.look(ctx).Managed).NotTo(BeEmpty())
		o.look(ctx)
		o.apply(ctx, `{}`)
		Expect(o.look(ctx).AbandonedBy).To(Equal("gitops"))
	})

	It("lets go by kubectl apply", func(ctx context.Context) {
		o := begin(ctx, "kubectl-applied")
		o.kubectlApply(`{"excessReplicas":2,"minReadySeconds":1}`)
		o.look(ctx)
		o.typed(ctx, 4)
		Expect(o.look(ctx).Restored).To(BeTrue())
		o.look(ctx)
		o.kubectlApply(`{"excessReplicas":2,"minReadySeconds":2}`)
		Expect(o.look(ctx).AbandonedBy).To(BeEmpty(), "it changed something else")
		o.kubectlApply(`{"minReadySeconds":2}`)
		Expect(o.look(ctx).AbandonedBy).To(Equal("kubectl-client-side-apply"))
	})

	It("does not let go by what anybody else drops, nor by a patch that only removes, which leaves no trace", func(ctx context.Context) {
		o := begin(ctx, "dropped")
		o.apply(ctx, `{"excessReplicas":2,"minReadySeconds":1}`)
		o.look(ctx)
		o.typed(ctx, 4)
		Expect(o.look(ctx).Restored).To(BeTrue())
		o.look(ctx)
		o.patch(ctx, types.MergePatchType, "gitops", `{"spec":{"excessReplicas":null}}`)
		Expect(o.look(ctx).Restored).To(BeTrue())
		o.look(ctx)
		o.patch(ctx, types.MergePatchType, "kubectl-patch", `{"spec":{"excessReplicas":0}}`)
		Expect(o.look(ctx).Annotations).To(HaveKeyWithValue(machine.WantedExcessAnnotation, ""))
	})
})
