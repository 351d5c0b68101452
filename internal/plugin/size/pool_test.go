// SPDX-License-Identifier: Apache-2.0

package size_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/fixture"
)

func pooled(o overview.Objects) size.Pool {
	GinkgoHelper()
	p, err := size.ReadPool(o, "pool")
	Expect(err).NotTo(HaveOccurred())
	return p
}

var _ = Describe("A MachineDeployment", func() {
	It("shows how long its machines boot, the latest last", func() {
		Expect(pooled(booted(2*time.Minute, 90*time.Second, 3*time.Minute)).Boot).To(Equal([]time.Duration{2 * time.Minute, 90 * time.Second, 3 * time.Minute}))
	})

	It("does not take for a boot that a Node is ready once more", func() {
		Expect(pooled(booted(2*time.Minute, 40*time.Minute, -time.Minute)).Boot).To(Equal([]time.Duration{2 * time.Minute}))
	})

	It("shows at most the latest 50 boots", func() {
		all := make([]time.Duration, 60)
		for i := range all {
			all[i] = time.Duration(i+1) * time.Second
		}
		Expect(pooled(booted(all...)).Boot).To(Equal(all[10:]))
	})

	It("shows what its machines have for workload: less than a Node by its DaemonSets", func() {
		o := booted(time.Minute)
		evicted := daemon("z")
		evicted.Name, evicted.Status.Phase = "evicted", corev1.PodFailed
		o.Pods = append(o.Pods, daemon("z"), evicted, fixture.Pod("waits"))
		p := pooled(o)
		Expect([]string{p.Machine.Cpu().String(), p.Machine.Memory().String(), p.Machine.Pods().String()}).To(Equal([]string{"3900m", "15Gi", "109"}))
		Expect(p.Nodes).To(Equal(map[string]bool{"z": true}))
	})

	It("shows the Nodes of its machines also where these cannot be read", func() {
		o := booted(time.Minute, time.Minute)
		o.Nodes = nil
		Expect(pooled(o).Nodes).To(Equal(map[string]bool{"y": true, "z": true}))
	})

	It("does not know the size of machines that it never had", func() {
		p := pooled(booted())
		Expect(p.Machine).To(BeNil())
		Expect(p.Boot).To(BeEmpty())
	})

	DescribeTable("shows what it asks for itself, and where",
		func(change func(*v1alpha1.MachineDeployment), current, own int, where string) {
			o := booted(time.Minute, time.Minute)
			o.Deployments[0].Annotations = map[string]string{}
			change(o.Deployments[0])
			p := pooled(o)
			Expect([]any{p.Current, p.Own, p.Where}).To(Equal([]any{current, own, where}))
		},
		Entry("nothing", func(*v1alpha1.MachineDeployment) {}, 0, 0, ""),
		Entry("a field", func(d *v1alpha1.MachineDeployment) { d.Spec.ExcessReplicas = ptr.To(int32(3)) }, 3, 3, "spec.excessReplicas"),
		Entry("bounds", func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.BoundsAnnotation] = "1:9:50%" }, 1, 1, "the annotation "+v1alpha1.BoundsAnnotation),
		Entry("bounds that leave no room for all of it now", func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.BoundsAnnotation] = "1:3:5" }, 5, 5, "the annotation "+v1alpha1.BoundsAnnotation),
		Entry("a share", func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.ShareAnnotation] = "2" }, 2, 2, "the excess of its pool"),
		Entry("a Reserve that asks for more", func(d *v1alpha1.MachineDeployment) {
			d.Spec.ExcessReplicas = ptr.To(int32(1))
			d.Annotations[v1alpha1.RequestedExcessAnnotation] = "office-hours=4"
		}, 4, 1, "spec.excessReplicas"),
	)

	It("shows what it asks for in devices", func() {
		o := booted(time.Minute)
		o.Deployments[0].Annotations = map[string]string{v1alpha1.BoundsAnnotation: "1:9:devices.gpu=6"}
		o.Devices = counted(2)
		Expect(pooled(o).Own).To(Equal(3))
	})

	It("is an error if there is none of that name", func() {
		_, err := size.ReadPool(booted(), "other")
		Expect(err).To(MatchError(size.ErrNotFound))
		Expect(err).To(MatchError(ContainSubstring(`machinedeployment "other"`)))
	})

	It("returns an error that also names what could not be read", func() {
		_, err := size.ReadPool(overview.Objects{Missing: []string{"machinedeployments: no rights to list them"}}, "pool")
		Expect(err).To(MatchError(size.ErrNotFound))
		Expect(err).To(MatchError(ContainSubstring("could not read: machinedeployments: no rights to list them")))
	})

	It("counts pods of no Nodes if its machines could not be read, rather than none", func() {
		o := booted(time.Minute)
		Expect(pooled(o).Nodes).NotTo(BeEmpty())
		o.Machines, o.MachinesUnknown = nil, true
		Expect(pooled(o).Nodes).To(BeNil())
	})

	It("says whether it is known what DaemonSets use", func() {
		o := booted(time.Minute)
		Expect(pooled(o).DaemonsUnknown).To(BeFalse())
		o.PodsUnknown = true
		Expect(pooled(o).DaemonsUnknown).To(BeTrue())
		o.Nodes = nil
		Expect(pooled(o).DaemonsUnknown).To(BeFalse(), "nothing is known of a machine")
	})

	It("is an error if there are several of that name", func() {
		o := booted()
		o.Deployments = append(o.Deployments, o.Deployments[0])
		_, err := size.ReadPool(o, "pool")
		Expect(err).To(MatchError(ContainSubstring("in several namespaces: select one with -n")))
	})
})

// counted is how many devices each Node has.
type counted int

func (c counted) Count(string, string) (int, string) { return int(c), "" }
