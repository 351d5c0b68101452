// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint"
)

// owned is a MachineDeployment whose field others set and remove.
type owned struct{ name string }

func (o owned) get(ctx context.Context) *machine.MachineDeployment {
	GinkgoHelper()
	d, err := machines().MachineDeployments("default").Get(ctx, o.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return d
}

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

// kubectl runs it on the MachineDeployment; text is its standard input.
func (o owned) kubectl(text, verb string, args ...string) string {
	GinkgoHelper()
	out, err := kubectl(text, append([]string{verb}, args...)...)
	Expect(err).NotTo(HaveOccurred(), out)
	return out
}

// edit is kubectl edit by a user who changes lines as a script of sed does.
func (o owned) edit(script string) {
	GinkgoHelper()
	Expect(os.Setenv("KUBE_EDITOR", "sed -i -e "+script)).To(Succeed())
	defer os.Unsetenv("KUBE_EDITOR")
	Expect(o.kubectl("", "edit", "machinedeployment", o.name)).To(ContainSubstring("edited"))
}

// typed is a client that does not know the field, and writes whole objects.
func (o owned) typed(ctx context.Context, change func(*int32)) {
	GinkgoHelper()
	client := stock.NewForConfigOrDie(cluster.Config()).MachineV1alpha1().MachineDeployments("default")
	d, err := client.Get(ctx, o.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	change(&d.Spec.Replicas)
	_, err = client.Update(ctx, d, metav1.UpdateOptions{FieldManager: "autoscaler"})
	Expect(err).NotTo(HaveOccurred())
}

func (o owned) typedScale(ctx context.Context) {
	GinkgoHelper()
	o.typed(ctx, func(replicas *int32) { *replicas++ })
}

// look is what the controller writes until it is at rest, as far as the field goes.
func (o owned) look(ctx context.Context) *machine.MachineDeployment {
	GinkgoHelper()
	for range 5 {
		d := o.get(ctx)
		change := machinetaint.New(machinetaint.View{Now: time.Now(), Deployment: d}).Deployment
		delete(change.Annotations, machine.AppliedExcessAnnotation) // which depends on machines
		if equality.Semantic.DeepEqual(change, machinetaint.DeploymentChange{}) {
			return d
		}
		o.patch(ctx, types.MergePatchType, machinetaint.FieldManager, patchOf(change))
	}
	Fail("it does not come to rest")
	return nil
}

// patchOf is the patch of a change, as far as the field goes.
func patchOf(change machinetaint.DeploymentChange) string {
	annotations, spec := map[string]any{}, map[string]any{}
	for key, value := range change.Annotations {
		if annotations[key] = value; value == "" {
			annotations[key] = nil
		}
	}
	if change.Field != nil {
		spec["excessReplicas"] = *change.Field
	}
	if change.Witness != nil {
		if spec["reserveWitness"] = *change.Witness; !*change.Witness {
			spec["reserveWitness"] = nil
		}
	}
	metadata := map[string]any{"annotations": annotations}
	if change.Managed != nil {
		metadata["managedFields"] = change.Managed
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
	Expect(err).NotTo(HaveOccurred())
	return string(patch)
}

func (o owned) expectExcess(ctx context.Context, excess int32) {
	GinkgoHelper()
	d := o.look(ctx)
	if excess == 0 {
		Expect(d.Spec.ExcessReplicas).To(BeNil())
		Expect(d.Annotations).NotTo(HaveKey(machine.WantedExcessAnnotation))
		return
	}
	Expect(d.Spec.ExcessReplicas).To(HaveValue(Equal(excess)))
	Expect(d.Annotations).To(HaveKeyWithValue(machine.WantedExcessAnnotation, fmt.Sprint(excess)))
}

func begin(ctx context.Context, name string) owned {
	GinkgoHelper()
	create(ctx, deployment(name))
	return owned{name}
}

// write is one write of a MachineDeployment.
type write func(context.Context, owned)

func patchSets(ctx context.Context, o owned) {
	o.kubectl("", "patch", "machinedeployment", o.name, "--type=merge", "-p", `{"spec":{"excessReplicas":2}}`)
}

func applies(spec string, args ...string) write {
	return func(_ context.Context, o owned) {
		o.kubectl(o.manifest(spec), "apply", append([]string{"-f", "-"}, args...)...)
	}
}

func gitopsApplies(spec string) write {
	return func(ctx context.Context, o owned) { o.apply(ctx, spec) }
}

func edits(script string) write { return func(_ context.Context, o owned) { o.edit(script) } }

func patches(kind, patch string) write {
	return func(_ context.Context, o owned) {
		o.kubectl("", "patch", "machinedeployment", o.name, "--type="+kind, "-p", patch)
	}
}

// replaces is kubectl replace by a user who has removed the line, and changed another one perhaps.
func replaces(change *strings.Replacer) write {
	return func(_ context.Context, o owned) {
		text := o.kubectl("", "get", "machinedeployment", o.name, "-o", "yaml")
		o.kubectl(change.Replace(strings.ReplaceAll(text, "  excessReplicas: 2\n", "")), "replace", "-f", "-")
	}
}

// knowing is a program with types that have the field.
func knowing(ctx context.Context, o owned) {
	d := o.get(ctx)
	d.Spec.ExcessReplicas, d.Spec.Replicas = nil, d.Spec.Replicas+1
	_, err := machines().MachineDeployments("default").Update(ctx, d, metav1.UpdateOptions{FieldManager: "autoscaler"})
	Expect(err).NotTo(HaveOccurred())
}

var _ = DescribeTable("The field spec.excessReplicas is given up, and means 0, when it is removed by",
	func(ctx context.Context, set, remove write) {
		for i, before := range []write{nil, func(ctx context.Context, o owned) { o.typedScale(ctx); o.look(ctx) }} {
			o := begin(ctx, fmt.Sprintf("removed-%d", i))
			set(ctx, o)
			o.expectExcess(ctx, 2)
			if before != nil {
				before(ctx, o)
				o.expectExcess(ctx, 2)
			}
			remove(ctx, o)
			o.expectExcess(ctx, 0)
		}
	},
	Entry("kubectl edit", write(patchSets), edits("/excessReplicas:/d")),
	Entry("kubectl edit, with another line changed", write(patchSets), edits("'/excessReplicas:/d;s/replicas: [34]/replicas: 7/'")),
	Entry("kubectl edit, where a GitOps tool set it", gitopsApplies(`{"excessReplicas":2,"minReadySeconds":1}`), edits("/excessReplicas:/d")),
	Entry("a merge patch", write(patchSets), patches("merge", `{"spec":{"excessReplicas":null}}`)),
	Entry("a merge patch, with replicas", write(patchSets), patches("merge", `{"spec":{"excessReplicas":null,"replicas":7}}`)),
	Entry("a JSON patch", write(patchSets), patches("json", `[{"op":"remove","path":"/spec/excessReplicas"}]`)),
	Entry("kubectl replace", write(patchSets), replaces(strings.NewReplacer())),
	Entry("kubectl replace, with another line changed", write(patchSets), replaces(strings.NewReplacer("minReadySeconds: 0", "minReadySeconds: 9"))),
	Entry("kubectl apply", applies(`{"excessReplicas":2}`), applies(`{}`)),
	Entry("kubectl apply, with another line changed", applies(`{"excessReplicas":2,"minReadySeconds":1}`), applies(`{"minReadySeconds":2}`)),
	Entry("kubectl apply --server-side", applies(`{"excessReplicas":2}`, "--server-side"), applies(`{}`, "--server-side")),
	Entry("a GitOps tool", gitopsApplies(`{"excessReplicas":2,"minReadySeconds":1}`), gitopsApplies(`{"minReadySeconds":1}`)),
	Entry("a GitOps tool that names nothing else", gitopsApplies(`{"excessReplicas":2}`), gitopsApplies(`{}`)),
	Entry("a program that knows it and writes the whole object", write(patchSets), write(knowing)),
)

var _ = Describe("The field spec.excessReplicas is restored", func() {
	It("when a client that does not know it writes the whole object, whoever set it", func(ctx context.Context) {
		for i, set := range []write{patchSets, gitopsApplies(`{"excessReplicas":2}`), applies(`{"excessReplicas":2}`), edits(`'s/^spec:/spec:\n  excessReplicas: 2/'`)} {
			o := begin(ctx, fmt.Sprintf("dropped-%d", i))
			set(ctx, o)
			o.look(ctx)
			for range 2 {
				o.typedScale(ctx)
				Expect(o.get(ctx).Spec.ExcessReplicas).To(BeNil())
				o.expectExcess(ctx, 2)
			}
			o.typed(ctx, func(*int32) {})
			o.expectExcess(ctx, 2)
		}
	})

	It("also by a client that wrote it before, with other types", func(ctx context.Context) {
		o := begin(ctx, "relapse")
		o.patch(ctx, types.MergePatchType, "autoscaler", `{"spec":{"excessReplicas":2}}`)
		o.look(ctx)
		o.typedScale(ctx)
		o.expectExcess(ctx, 2)
	})

	It("and given up by 0, which nobody restores", func(ctx context.Context) {
		o := begin(ctx, "zero")
		patchSets(ctx, o)
		o.look(ctx)
		patches("merge", `{"spec":{"excessReplicas":0}}`)(ctx, o)
		Expect(o.look(ctx).Annotations).NotTo(HaveKey(machine.WantedExcessAnnotation))
		o.typedScale(ctx)
		o.expectExcess(ctx, 0)
	})
})
