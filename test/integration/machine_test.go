// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	machineapply "github.com/evenkeel/evenkeel/pkg/client/applyconfiguration/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	machineclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/machine/v1alpha1"
)

func machines() machineclient.MachineV1alpha1Interface {
	return versioned.NewForConfigOrDie(cluster.Config()).MachineV1alpha1()
}

func deployment(name string) *machine.MachineDeployment {
	labels := map[string]string{"name": name}
	return &machine.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: machine.MachineDeploymentSpec{StockMachineDeploymentSpec: machine.StockMachineDeploymentSpec{
			Replicas: 3,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: machine.MachineTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		}},
	}
}

func create(ctx context.Context, md *machine.MachineDeployment) *machine.MachineDeployment {
	GinkgoHelper()
	created, err := machines().MachineDeployments("default").Create(ctx, md, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(machines().MachineDeployments("default").Delete(ctx, md.Name, metav1.DeleteOptions{})).To(Succeed())
	})
	return created
}

var _ = Describe("MachineDeployment", func() {
	It("keeps the excess through a typed client, status apart from spec", func(ctx context.Context) {
		md := deployment("typed")
		md.Spec.ExcessReplicas = ptr.To[int32](2)
		md.Status.ExcessReplicas = 7
		created := create(ctx, md)
		Expect(created.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(2)))
		Expect(created.Status.ExcessReplicas).To(BeZero())

		created.Status.ExcessReplicas, created.Status.ReadyExcessReplicas = 2, 1
		created.Spec.ExcessReplicas = nil
		updated, err := machines().MachineDeployments("default").UpdateStatus(ctx, created, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(updated.Status.ExcessReplicas).To(BeEquivalentTo(2))
		Expect(updated.Status.ReadyExcessReplicas).To(BeEquivalentTo(1))
		Expect(updated.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(2)))
	})

	It("takes an apply configuration of the excess alone", func(ctx context.Context) {
		create(ctx, deployment("applied"))
		wish := machineapply.MachineDeployment("applied", "default").WithSpec(machineapply.MachineDeploymentSpec().WithExcessReplicas(1))
		applied, err := machines().MachineDeployments("default").Apply(ctx, wish, metav1.ApplyOptions{FieldManager: "somebody"})
		Expect(err).NotTo(HaveOccurred())
		Expect(applied.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(1)))
		Expect(applied.Spec.Replicas).To(BeEquivalentTo(3))
	})

	It("scales through its subresource and leaves the excess alone", func(ctx context.Context) {
		md := deployment("scaled")
		md.Spec.ExcessReplicas = ptr.To[int32](2)
		create(ctx, md)
		out, err := kubectl("", "scale", "mcd/scaled", "--replicas=5")
		Expect(err).NotTo(HaveOccurred(), out)
		scale, err := machines().MachineDeployments("default").GetScale(ctx, "scaled", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(scale.Spec.Replicas).To(BeEquivalentTo(5))
		got, err := machines().MachineDeployments("default").Get(ctx, "scaled", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Spec.ExcessReplicas).To(HaveValue(BeEquivalentTo(2)))
	})

	It("refuses a negative excess and says what to write", func(ctx context.Context) {
		md := deployment("negative")
		md.Spec.ExcessReplicas = ptr.To[int32](-1)
		_, err := machines().MachineDeployments("default").Create(ctx, md, metav1.CreateOptions{})
		Expect(errors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err.Error()).To(And(ContainSubstring("spec.excessReplicas"), ContainSubstring("must be 0 or more"), ContainSubstring("0 means none")))
	})

	It("refuses an excess that is no number", func(ctx context.Context) {
		create(ctx, deployment("text"))
		out, err := kubectl("", "patch", "mcd", "text", "--type=merge", "-p", `{"spec":{"excessReplicas":"two"}}`)
		Expect(err).To(HaveOccurred())
		Expect(out).To(And(ContainSubstring("spec.excessReplicas"), ContainSubstring("integer")))
	})

	It("is explained and printed", func(ctx context.Context) {
		// The API server publishes what a CRD says some moments after it has taken it.
		Eventually(func() (string, error) {
			explained, err := kubectl("", "explain", "machinedeployment.spec.excessReplicas")
			return strings.Join(strings.Fields(explained), " "), err
		}).Should(And(ContainSubstring("Number of machines to keep in reserve"), ContainSubstring("Minimum 0")))
		md := deployment("printed")
		md.Spec.ExcessReplicas = ptr.To[int32](2)
		create(ctx, md)
		Expect(kubectl("", "get", "mcd", "printed")).To(MatchRegexp(`NAME +READY +DESIRED +EXCESS +UP-TO-DATE +AVAILABLE +AGE\nprinted +3 +2 `))
	})
})

var _ = Describe("Machine", func() {
	It("shows how long it has been in reserve", func(ctx context.Context) {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "held"}}
		m.Spec.NodeTemplateSpec.Annotations = map[string]string{machine.ReserveAnnotation: time.Now().Add(-90 * time.Minute).UTC().Format(time.RFC3339)}
		_, err := machines().Machines("default").Create(ctx, m, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(machines().Machines("default").Delete(ctx, "held", metav1.DeleteOptions{})).To(Succeed())
		})
		Expect(kubectl("", "get", "mc", "held")).To(MatchRegexp(`NAME +STATUS +AGE +NODE +RESERVE\nheld .* 90m`))
	})
})

var _ = Describe("The bounds policy", func() {
	It("answers as the parser does", func(ctx context.Context) {
		for _, bounds := range []string{"0:0", "1:5", "1:5:2", "1:5:20%", "1:10:cpu=16,memory=64Gi", "1:10:cpu=10%", "1:10:max(1,5%)", "1:5:max(1,2)", "1:5:max(1)",
			"", "1", "5:1", "1:5:-1", "1:5:two", "01:5", "0:2147483648", "1:5:cpu=1,cpu=2", "1:5:2,cpu=1", "1: 5", strings.Repeat("1", 300)} {
			_, parseErr := machine.ParseBounds(bounds)
			err := dryCreate(ctx, bounds)
			if parseErr == nil {
				Expect(err).NotTo(HaveOccurred(), bounds)
				continue
			}
			Expect(errors.IsInvalid(err)).To(BeTrue(), "%q: %v", bounds, err)
			Expect(err.Error()).To(Or(ContainSubstring("min:max"), ContainSubstring("must"), ContainSubstring("only once")), bounds)
		}
	})

	DescribeTable("checks what users write elsewhere",
		func(ctx context.Context, change func(*machine.MachineDeployment), valid bool) {
			md := deployment("annotated")
			change(md)
			_, err := machines().MachineDeployments("default").Create(ctx, md, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			Expect(errors.IsInvalid(err)).To(Equal(!valid), "%v", err)
		},
		Entry(nil, poolExcess("max(1,5%)"), true),
		Entry(nil, poolExcess("some"), false),
		Entry(nil, annotation(machine.BalanceAnnotation, "Continuous"), true),
		Entry(nil, annotation(machine.BalanceAnnotation, "on"), false),
		Entry(nil, annotation(machine.DrainReserveAnnotation, "true"), true),
		Entry(nil, annotation(machine.DrainReserveAnnotation, "yes"), false),
	)

	It("lets an object with old garbage take every other change", func(ctx context.Context) {
		create(ctx, deployment("old"))
		policies := dynamic.NewForConfigOrDie(cluster.Config()).Resource(schema.GroupVersionResource{
			Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"})
		binding := "machinedeployment-annotations.evenkeel.machine.sapcloud.io"
		Expect(policies.Delete(ctx, binding, metav1.DeleteOptions{})).To(Succeed())
		garbage := []byte(`{"metadata":{"annotations":{"` + machine.BoundsAnnotation + `":"garbage"}}}`)
		patch := func(data []byte) error {
			_, err := machines().MachineDeployments("default").Patch(ctx, "old", types.MergePatchType, data, metav1.PatchOptions{})
			return err
		}
		Eventually(func() error { return patch(garbage) }, 30*time.Second, 50*time.Millisecond).Should(Succeed())
		Expect(cluster.Apply(ctx, "kubernetes/policies")).To(Succeed())
		expectPolicies(ctx)

		Expect(patch([]byte(`{"spec":{"replicas":4}}`))).To(Succeed())
		Expect(patch([]byte(`{"metadata":{"annotations":{"` + machine.BoundsAnnotation + `":"other garbage"}}}`))).NotTo(Succeed())
		Expect(patch([]byte(`{"metadata":{"annotations":{"` + machine.BoundsAnnotation + `":null}}}`))).To(Succeed())
	})
})

var _ = DescribeTable("The template policy refuses what the CRD takes and clients cannot read, with what to do", func(spec, says string) {
	const manifest = `{"apiVersion":"machine.sapcloud.io/v1alpha1","kind":"MachineDeployment","metadata":{"name":"unreadable"},"spec":`
	out, err := kubectl(manifest+spec+"}", "create", "--validate=false", "--dry-run=server", "-f", "-")
	if says == "" {
		Expect(err).NotTo(HaveOccurred(), out)
		return
	}
	Expect(err).To(HaveOccurred())
	Expect(out).To(ContainSubstring(says))
},
	Entry("not what is right", `{"strategy":{"rollingUpdate":{"maxSurge":"25%"}},"template":{"metadata":{"name":"5","creationTimestamp":null,"labels":{"team":"42"}},"spec":{"drainTimeout":"48h"}}}`, ""),
	Entry("a duration", `{"template":{"spec":{"drainTimeout":"7d"}}}`, "for example 48h"),
	Entry("a label", `{"template":{"metadata":{"labels":{"team":42}}}}`, "labels and annotations are text"),
	Entry("a name", `{"template":{"spec":{"nodeTemplate":{"metadata":{"name":5}}}}}`, "metadata needs only labels and annotations"),
	Entry("a time", `{"template":{"spec":{"nodeTemplate":{"spec":{"taints":[{"key":"a","effect":"NoSchedule","timeAdded":"2026-01-31t08:00:00z"}]}}}}}`, "leave out timeAdded"),
	Entry("an amount", `{"template":{},"strategy":{"rollingUpdate":{"maxSurge":2147483648}}}`, "at most 2147483647"),
)

func annotation(key, value string) func(*machine.MachineDeployment) {
	return func(md *machine.MachineDeployment) { md.Annotations = map[string]string{key: value} }
}

func poolExcess(text string) func(*machine.MachineDeployment) {
	return func(md *machine.MachineDeployment) {
		md.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{machine.PoolExcessAnnotation: text}
	}
}

func dryCreate(ctx context.Context, bounds string) error {
	md := deployment("bounded")
	md.Annotations = map[string]string{machine.BoundsAnnotation: bounds}
	_, err := machines().MachineDeployments("default").Create(ctx, md, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

var _ = Describe("Objects of stock machine-controller-manager", Ordered, func() {
	var samples []string

	BeforeAll(func() {
		out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gardener/machine-controller-manager").Output()
		Expect(err).NotTo(HaveOccurred())
		samples, err = filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "kubernetes", "machine_objects", "*.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(samples).NotTo(BeEmpty())
		gardener, err := filepath.Glob("testdata/*.yaml")
		Expect(err).NotTo(HaveOccurred())
		samples = append(samples, gardener...)
	})

	It("apply unchanged and come back byte for byte", func(ctx context.Context) {
		for _, sample := range samples {
			text, err := os.ReadFile(sample)
			Expect(err).NotTo(HaveOccurred())
			for i, document := range strings.Split(string(text), "\n---\n") {
				By(fmt.Sprintf("%s, document %d", filepath.Base(sample), i))
				comesBack(ctx, []byte(document))
			}
		}
	})
})

// comesBack stores an object by kubectl, reads it raw and as our types, and wants nothing added but what a server adds.
func comesBack(ctx context.Context, document []byte) {
	GinkgoHelper()
	sent := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(document, &sent.Object)).To(Succeed())
	out, err := kubectl(string(document), "create", "-f", "-")
	Expect(err).NotTo(HaveOccurred(), out)
	DeferCleanup(func() {
		_, _ = kubectl("", "patch", strings.ToLower(sent.GetKind()), sent.GetName(), "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		out, err := kubectl(string(document), "delete", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
	})
	gvr := machine.SchemeGroupVersion.WithResource(strings.ToLower(sent.GetKind()) + map[bool]string{true: "es", false: "s"}[strings.HasSuffix(sent.GetKind(), "s")])
	stored, err := dynamic.NewForConfigOrDie(cluster.Config()).Resource(gvr).Namespace("default").Get(ctx, sent.GetName(), metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	ours, stock := typesOf(sent.GetKind())
	Expect(throughType(stored.Object, ours)).To(MatchJSON(throughType(stored.Object, stock)), "a typed client loses or adds something")

	for _, added := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(stored.Object, "metadata", added)
	}
	Expect(asJSON(stored.Object)).To(Equal(asJSON(sent.Object)))
}

// throughType is an object after it was read as a Go type and written again: what a typed client would put.
func throughType(object map[string]any, into any) string {
	GinkgoHelper()
	Expect(json.Unmarshal([]byte(asJSON(object)), into)).To(Succeed())
	return asJSON(into)
}

// typesOf returns the types of a kind: ours, and machine-controller-manager's.
func typesOf(kind string) (ours, stock any) {
	switch kind {
	case "Machine":
		return &machine.Machine{}, &mcm.Machine{}
	case "MachineSet":
		return &machine.MachineSet{}, &mcm.MachineSet{}
	case "MachineClass":
		return &machine.MachineClass{}, &mcm.MachineClass{}
	default:
		return &machine.MachineDeployment{}, &mcm.MachineDeployment{}
	}
}

func asJSON(object any) string {
	GinkgoHelper()
	text, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
