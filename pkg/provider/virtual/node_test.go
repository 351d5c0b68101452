// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"encoding/json"
	"strings"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	mcmcontroller "github.com/gardener/machine-controller-manager/pkg/util/provider/machinecontroller"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("The Node of a machine", func() {
	reserve := corev1.Taint{Key: "example.com/reserve", Effect: corev1.TaintEffectNoSchedule}
	startup := corev1.Taint{Key: "example.com/startup", Effect: corev1.TaintEffectNoExecute}
	var v VM

	BeforeEach(func() {
		spec, err := ParseSpec([]byte(with(`"allocatable":{"cpu":"3900m"}`)))
		Expect(err).NotTo(HaveOccurred())
		v = VM{Name: "pool-z1-abc", Class: "pool-z1", Hardware: spec.Hardware, Created: noon}
	})

	It("says what a cloud's node says", func() {
		node := nodeOf(v, nil, Fault{}, noon)
		Expect(node.Name).To(Equal("pool-z1-abc"))
		Expect(node.Spec.ProviderID).To(MatchRegexp(`^virtual:///z1/pool-z1-abc/[0-9a-z]+$`))
		Expect(node.Labels).To(Equal(map[string]string{
			"kubernetes.io/hostname": "pool-z1-abc", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r", "node.kubernetes.io/instance-type": "small",
		}))
		Expect(node.Annotations).To(Equal(map[string]string{"kwok.x-k8s.io/node": "fake"}))
		Expect(node.Status.Capacity.Cpu().MilliValue()).To(BeEquivalentTo(4000))
		Expect(node.Status.Allocatable.Cpu().MilliValue()).To(BeEquivalentTo(3900))
		Expect(node.Status.Allocatable.Memory()).To(Equal(node.Status.Capacity.Memory()))
		Expect(node.Status.Phase).To(BeEmpty(), "kwok rewrites the conditions of Running nodes at intervals")
		Expect(node.Spec.Taints).To(BeEmpty())
		for _, c := range node.Status.Conditions {
			Expect(c.Status == corev1.ConditionTrue).To(Equal(c.Type == corev1.NodeReady), "%s", c.Type)
			Expect(c.LastTransitionTime.Time).To(Equal(noon))
		}
	})

	It("registers with the faults it has", func() {
		node := nodeOf(v, nil, pressure(corev1.ConditionTrue), noon)
		Expect(node.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.NodeDiskPressure), HaveField("Status", corev1.ConditionTrue))))
		Expect(node.Status.Conditions).To(HaveLen(len(healthy)))
	})

	It("carries template taints and the startup taint", func() {
		v.Hardware.StartupTaint = &startup
		now := metav1.NewTime(noon)
		added := reserve
		added.TimeAdded = &now
		Expect(nodeOf(v, []corev1.Taint{added}, Fault{}, noon).Spec.Taints).To(Equal([]corev1.Taint{reserve, startup}))
	})

	It("carries a taint once that the template has twice, or that is the startup taint too", func() {
		v.Hardware.StartupTaint = &startup
		older, newer := startup, startup
		older.Value, newer.Value = "older", "newer"
		node := nodeOf(v, []corev1.Taint{older, reserve, newer}, Fault{}, noon)
		Expect(node.Spec.Taints).To(Equal([]corev1.Taint{reserve, newer}), "an API server refuses a Node with two")
		same := &v1alpha1.Machine{}
		same.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{older, reserve, newer}
		Expect(mcmcontroller.SyncMachineTaints(same, node, node.Spec.Taints)).To(BeFalse(), "MCM would write the Node again")
	})

	It("leaves the template's taints to MCM where the class says so, but not the startup taint", func() {
		v.Hardware.StartupTaint = &startup
		v.Hardware.TaintsAtRegistration = false
		node := nodeOf(v, []corev1.Taint{reserve}, Fault{}, noon)
		Expect(node.Spec.Taints).To(Equal([]corev1.Taint{startup}))
		Expect(node.Annotations).NotTo(HaveKey(machineutils.LastAppliedALTAnnotation))
	})

	// MCM's own function decides; what it is given is what MCM reads from the Node.
	It("lets MCM take a template taint away again, and only that", func() {
		v.Hardware.StartupTaint = &startup
		node := nodeOf(v, []corev1.Taint{reserve}, Fault{}, noon)
		var applied v1alpha1.NodeTemplateSpec
		Expect(json.Unmarshal([]byte(node.Annotations[machineutils.LastAppliedALTAnnotation]), &applied)).To(Succeed())
		same := &v1alpha1.Machine{}
		same.Spec.NodeTemplateSpec.Spec.Taints = []corev1.Taint{reserve}
		Expect(mcmcontroller.SyncMachineTaints(same, node.DeepCopy(), applied.Spec.Taints)).To(BeFalse(), "MCM would write the Node for ever")
		Expect(mcmcontroller.SyncMachineTaints(&v1alpha1.Machine{}, node, applied.Spec.Taints)).To(BeTrue())
		Expect(node.Spec.Taints).To(Equal([]corev1.Taint{startup}))
	})

	It("survives its record", func() {
		v.Hardware.StartupTaint = &startup
		v.Dead = true
		config, err := recordOf(v, "garden")
		Expect(err).NotTo(HaveOccurred())
		back, err := FromRecord(config)
		Expect(err).NotTo(HaveOccurred())
		Expect(nodeOf(back, nil, Fault{}, noon)).To(Equal(nodeOf(v, nil, Fault{}, noon)))
		Expect(back.Dead).To(BeTrue())
		Expect(back.Created).To(Equal(v.Created))
		config.Name = "virtual-machine-other"
		_, err = FromRecord(config)
		Expect(err).To(MatchError(ContainSubstring("pool-z1-abc")))
		config.Data["machine.json"] = strings.Replace(config.Data["machine.json"], "dead", "undead", 1)
		_, err = FromRecord(config)
		Expect(err).To(MatchError(ContainSubstring("undead")))
	})
})
