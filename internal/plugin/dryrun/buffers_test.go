// SPDX-License-Identifier: Apache-2.0

package dryrun_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	. "github.com/evenkeel/evenkeel/internal/plugin/dryrun"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	capacitybufferplan "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// buffered are zones, and in namespace shop a Deployment web of ten pods of one CPU each.
func buffered(requested map[string]int) *Objects {
	GinkgoHelper()
	o := zones(requested)
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	web.Spec.Replicas = ptr.To[int32](10)
	web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}
	o.References = capacitybuffer.References{Objects: map[string][]any{"Deployment": {web}}, Unread: map[string]string{}}
	return o
}

const web = "scalableRef: {apiGroup: apps, kind: Deployment, name: web}"

// asking is a CapacityBuffer of Evenkeel's strategy.
func asking(name, spec string) string {
	return "apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: " + name + "}\nspec: {provisioningStrategy: evenkeel.dev/reserved, " + spec + "}\n"
}

// keepBuffer adds a buffer of web with chunks on machines of z1, as the controllers leave it.
func keepBuffer(o *Objects, name string, chunks, machines int) {
	GinkgoHelper()
	b := &v1beta1.CapacityBuffer{}
	Expect(yaml.Unmarshal([]byte(asking(name, web)), b)).To(Succeed())
	b.Namespace, b.CreationTimestamp, b.Spec.Replicas = "shop", metav1.NewTime(noon.Add(-time.Hour)), ptr.To(int32(chunks))
	b.Status = capacitybufferplan.NewStatus(capacitybufferplan.Decision{Buffer: b, Asked: chunks, Chunks: chunks, Placed: chunks, Ready: chunks, Pools: []string{"z1"}}, noon.Add(-time.Hour))
	o.Buffers = append(o.Buffers, b)
	keepOne(o, capacitybufferplan.NewReserve(fixture.Namespace, capacitybufferplan.Request{Pool: "z1", Machines: machines}))
}

var _ = Describe("A forecast of CapacityBuffers", func() {
	It("takes what buffers refer to from the change as well, new or merged", func() {
		shop := "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n"
		more := shop + "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 20}\n---\n"
		f, _ := told(*buffered(nil), more+asking("web", web+", percentage: 20"))
		Expect(f.End.Buffers[0].Chunks).To(Equal(4), "a fifth of 20 in place of 10")

		build := "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: build}\ntemplate: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}\n---\n"
		o := buffered(nil)
		f, _ = told(*o, build+asking("build", "podTemplateRef: {name: build}, replicas: 3"))
		Expect(f.End.Buffers[0]).To(And(HaveField("Chunks", 3), HaveField("Ready", 3)))
		Expect(o.References.Objects).To(HaveLen(1), "what was read stays as it is")
	})

	DescribeTable("refuses changes of what they refer to", func(change, why string) {
		changes, err := ParseChanges(strings.NewReader(change), Namespaces{Control: fixture.Namespace, Target: "shop"})
		Expect(err).NotTo(HaveOccurred())
		o := *buffered(nil)
		o.References.Unread["Job"] = "the jobs of the target cluster could not be read: no rights"
		for _, c := range changes {
			o, err = o.Apply(c, nil)
			Expect(err).NotTo(HaveOccurred())
		}
		_, err = New(GinkgoT().Context(), o, o, settings(), clients())
		Expect(err).To(MatchError(why))
	},
		Entry("if none does", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 20}\n",
			"change Deployment shop/web: nothing to predict, because no CapacityBuffer of Evenkeel refers to a Deployment"),
		Entry("if they are misspelled", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replica: 20}\n---\n"+asking("web", web+", replicas: 1"),
			`change Deployment shop/web: unknown field "spec.replica"`),
		Entry("if the others could not be read", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: 2}\n---\n"+asking("j", "scalableRef: {apiGroup: batch, kind: Job, name: j}, replicas: 1"),
			"change Job shop/j: the jobs of the target cluster could not be read: no rights"),
	)

	It("gives up the machines of buffers that are gone", func() {
		o := buffered(map[string]int{"z1": 1})
		keepBuffer(o, "web", 2, 1)
		f, text := told(*o, "")
		Expect(short(f.End.Pools[0])).To(Equal("R1 A1 serve a reserve b leave  new 0+0"), text)
		o.Buffers = nil
		f, text = told(*o, "")
		Expect(short(f.End.Pools[0])).To(Equal("R1 A0 serve a reserve  leave b new 0+0"), text)
	})

	It("leaves room for DaemonSets beside the chunks", func() {
		for _, daemons := range []int{0, 1} {
			o := buffered(nil)
			for range daemons {
				set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "agent", UID: "agent"}}
				set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "agent", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("3")}}}}
				o.Daemons = append(o.Daemons, set)
			}
			f, text := told(*o, asking("web", web+", replicas: 2"))
			machines := 0
			for _, p := range f.End.Pools {
				machines += p.New.Reserve
			}
			Expect(machines).To(Equal(1+daemons), text)
		}
	})

	It("shows the chunks of a new one, the machines that hold them, and what its conditions become", func() {
		_, text := told(*buffered(nil), asking("web", web+", percentage: 60"))
		Expect(text).To(Equal(`CapacityBuffer shop/web: moving (room for 0 of 6 chunks is ready in z1, z2)
  ReadyForProvisioning: True, AttributesSetSuccessfully: the buffer asks for 6 chunks
  LimitedByQuotas: False, NotLimited: ResourceQuotas leave room for all chunks
  Provisioning: False, RequiresNewCapacity: room for 0 of 6 chunks is ready in z1, z2
Reserve default/capacity-buffers.z1: moving (chunks of CapacityBuffers need it)
  create it, with replicas 1
Reserve default/capacity-buffers.z2: moving (chunks of CapacityBuffers need it)
  create it, with replicas 1
3 objects are at rest.

In the end, if nothing else changes:
CapacityBuffer shop/web: room for 6 of 6 chunks is ready in z1, z2
Reserve default/capacity-buffers.z1: 1 of 1 machines are ready in 1 MachineDeployment
  requested:  z1 0 -> 1
Reserve default/capacity-buffers.z2: 1 of 1 machines are ready in 1 MachineDeployment
  requested:  z2 0 -> 1
MachineDeployment default/z1: 1 of 1 machines serve, 1 in reserve
  serve:      z1-a
  new:        1 in reserve
MachineDeployment default/z2: 1 of 1 machines serve, 1 in reserve
  serve:      z2-a
  new:        1 in reserve
`))
	})

	It("counts one that is at rest, and creates machines for the chunks that are added alone", func() {
		o := buffered(map[string]int{"z1": 1})
		keepBuffer(o, "web", 2, 1)
		_, text := told(*o, "")
		Expect(text).To(Equal("5 objects are at rest.\nNothing changes.\n"))
		f, text := told(*o, asking("web", "replicas: 6"))
		Expect(text).To(HavePrefix("CapacityBuffer shop/web: moving (room for 4 of 6 chunks is ready in z1, z2)\n"))
		Expect(ends(f)).To(Equal("z1: R1 A1 serve a reserve b leave  new 0+0\nz2: R1 A1 serve a reserve  leave  new 0+1\nz3: R1 A0 serve a reserve  leave  new 0+0"))
	})

	It("shows that a Reserve and its machine go with the strategy", func() {
		o := buffered(map[string]int{"z1": 1})
		keepBuffer(o, "web", 2, 1)
		_, text := told(*o, strings.Replace(asking("web", ""), "evenkeel.dev/reserved", "null", 1))
		Expect(text).To(Equal(`CapacityBuffer shop/web: at rest (its strategy is buffer.x-k8s.io/active-capacity, so Evenkeel does not manage it)
Reserve default/capacity-buffers.z1: moving (1 of 1 machines are ready in 1 MachineDeployment)
  It requests 1 machine: spec.replicas is 1.
  delete it (no chunk needs it)
3 objects are at rest.

In the end, if nothing else changes:
Reserve default/capacity-buffers.z1: deleted
  requested:  z1 1 -> 0
MachineDeployment default/z1: 1 of 1 machines serve, 0 in reserve
  serve:      z1-a
  leave:      z1-b
`))
	})

	It("gives a new one what quotas leave to older ones", func() {
		o := buffered(map[string]int{"z1": 1})
		keepBuffer(o, "web", 2, 1)
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"}}
		quota.Status.Hard = corev1.ResourceList{"cpu": resource.MustParse("3")}
		o.References.Objects["ResourceQuota"] = []any{quota}
		f, text := told(*o, asking("late", web+", replicas: 2"))
		Expect(text).To(ContainSubstring("LimitedByQuotas: True, ResourceQuotasAllocated: ResourceQuotas leave room for 1 of 2 chunks: q\n"))
		Expect(f.End.Buffers).To(HaveExactElements(And(HaveField("Name", "late"), HaveField("Ready", 1)), And(HaveField("Name", "web"), HaveField("Ready", 2))))
	})

	DescribeTable("shows what is wrong with one",
		func(spec, says string) {
			_, text := told(*buffered(nil), asking("web", spec))
			Expect(text).To(HavePrefix("CapacityBuffer shop/web: blocked ("))
			Expect(text).To(And(ContainSubstring(says), HaveSuffix("\nNothing changes.\n")))
		},
		Entry("no reference", "replicas: 1", "ReadyForProvisioning: False, ReferenceInvalid: the buffer has no reference"),
		Entry("no PodTemplate", "podTemplateRef: {name: none}, replicas: 1", "PodTemplate none does not exist in namespace shop)\n"),
		Entry("no workload", "scalableRef: {apiGroup: apps, kind: Deployment, name: none}, replicas: 1", "\n  To change that: create it, or correct spec.scalableRef.\n"),
		Entry("no number", web, "set replicas, percentage or limits"),
		Entry("a scale that is not read", "scalableRef: {apiGroup: x, kind: Rollout, name: web}, replicas: 1", "the scale of Rollout web has not been read yet"),
	)

	It("leaves machines as they are where what one refers to cannot be read", func() {
		o := buffered(map[string]int{"z1": 1})
		keepBuffer(o, "web", 2, 1)
		o.References.Objects, o.References.Unread["Deployment"] = nil, "the deployments of the target cluster could not be read: no rights to list them"
		f, text := told(*o, "")
		Expect(text).To(HavePrefix("CapacityBuffer shop/web: blocked (see the condition ReadyForProvisioning: the deployments of the target cluster could not be read: no rights to list them)\n"))
		Expect(text).NotTo(ContainSubstring("To change that"), "the controller may have the right")
		Expect(short(f.End.Pools[0])).To(Equal("R1 A1 serve a reserve b leave  new 0+0"))
	})

	It("omits them if several namespaces have MachineDeployments, and reports that", func() {
		o := buffered(nil)
		o.Deployments[2].Namespace = "other"
		f, _ := told(*o, asking("web", web+", replicas: 1"))
		Expect(f.Notes).To(Equal([]string{"CapacityBuffers are omitted, because several namespaces have MachineDeployments, each with a manager of its own: select one with --namespace"}))
		Expect(f.End.Buffers).To(BeEmpty())
	})

	DescribeTable("refuses a change",
		func(change func(*Objects), says string) {
			o := buffered(nil)
			change(o)
			_, err := after(*o, asking("web", web+", replicas: 1"))
			Expect(err).To(MatchError(ContainSubstring(says)))
		},
		Entry("without a target cluster", func(o *Objects) { o.Target = false }, "change CapacityBuffer shop/web: CapacityBuffers need a target cluster"),
		Entry("while buffers cannot be read", func(o *Objects) { o.Unread = map[string]string{"capacitybuffers": "no rights"} }, "the capacitybuffers of the cluster could not be read: no rights"),
		Entry("while Reserves cannot be read", func(o *Objects) { o.Unread = map[string]string{"reserves": "no rights"} }, "the reserves of the cluster could not be read: no rights"),
		Entry("that the API server refuses", func(o *Objects) {
			keepBuffer(o, "web", 2, 1)
			o.Buffers[0].Spec.PodTemplateRef = &v1beta1.LocalObjectRef{Name: "x"}
		}, "set either podTemplateRef or scalableRef"),
	)
})
