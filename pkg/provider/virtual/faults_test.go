// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"time"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var _ = Describe("Faults", func() {
	parse := func(text string) (Faults, error) { return ParseFaults(map[string]string{FaultsKey: text}) }

	DescribeTable("are read", func(text string, expected Fault) {
		faults, err := parse("machines: {m: " + text + "}")
		Expect(err).NotTo(HaveOccurred())
		got := faults.ForMachine("z", "c", "m")
		if len(got.Conditions) == 0 {
			got.Conditions = nil
		}
		Expect(got).To(Equal(expected))
		Expect(faults.ForMachine("z", "c", "other")).To(Equal(Fault{}))
	},
		Entry("none", "{}", Fault{}),
		Entry("nothing at all", "", Fault{}),
		Entry("outage", "{outage: true}", Fault{Outage: true}),
		Entry("create error", "{createError: Unavailable}", Fault{CreateError: codes.Unavailable}),
		Entry("slowness", "{extraBootDelay: 1m30s}", Fault{ExtraBootDelay: 90 * time.Second}),
		Entry("partition", "{ready: Unknown}", Fault{Ready: corev1.ConditionUnknown}),
		Entry("sick kubelet, as YAML reads a bare False", "{ready: False}", Fault{Ready: corev1.ConditionFalse}),
		Entry("sick kubelet, quoted", `{ready: "False"}`, Fault{Ready: corev1.ConditionFalse}),
		Entry("death", "{dead: true}", Fault{Dead: true}),
		Entry("conditions", "{conditions: {DiskPressure: True, Custom: Unknown}}", Fault{Conditions: map[corev1.NodeConditionType]corev1.ConditionStatus{
			corev1.NodeDiskPressure: corev1.ConditionTrue, "Custom": corev1.ConditionUnknown,
		}}),
		Entry("stuck delete", "{stuckDelete: true}", Fault{StuckDelete: true}),
	)

	It("describe the registry", func() {
		faults, err := parse("registry: {bandwidth: 50M, latency: 20ms, down: true}")
		Expect(err).NotTo(HaveOccurred())
		Expect(faults.Registry).To(Equal(Registry{Bandwidth: 50e6, Latency: 20 * time.Millisecond, Down: true}))
	})

	DescribeTable("are refused with the place", func(text, place, hint string) {
		_, err := parse(text)
		Expect(err).To(MatchError(And(HavePrefix(place+": "), ContainSubstring(hint))))
	},
		Entry("no YAML", "zones: [", "faults.yaml", "yaml"),
		Entry("a list", "[]", "faults.yaml", "must be an object"),
		Entry("twice the same", "zones: {}\nzones: {}", "faults.yaml", "zones"),
		Entry("an unknown level", "regions: {}", "faults.yaml.regions", "classes, machines, registry, zones"),
		Entry("an unknown line", "registry: {speed: 1}", "faults.yaml.registry.speed", "bandwidth, down, latency"),
		Entry("no bandwidth", "registry: {bandwidth: fast}", "faults.yaml.registry.bandwidth", "quantity"),
		Entry("an unknown fault", "zones: {z: {fire: true}}", "faults.yaml.zones.z.fire", "unknown field"),
		Entry("an unknown code", "zones: {z: {createError: Nope}}", "faults.yaml.zones.z.createError", `"Nope"`),
		Entry("no error", "zones: {z: {createError: OK}}", "faults.yaml.zones.z.createError", "machine code"),
		Entry("no name", "zones: {z: {createError: 8}}", "faults.yaml.zones.z.createError", "machine code"),
		Entry("no duration", "zones: {z: {extraBootDelay: 3}}", "faults.yaml.zones.z.extraBootDelay", `"2s"`),
		Entry("ready as a fault", "machines: {m: {ready: True}}", "faults.yaml.machines.m.ready", "Unknown or False"),
		Entry("ready as a condition", "machines: {m: {conditions: {Ready: False}}}", "faults.yaml.machines.m.conditions.Ready", "field ready"),
		Entry("no status", "machines: {m: {conditions: {DiskPressure: high}}}", "faults.yaml.machines.m.conditions.DiskPressure", "True, False or Unknown"),
		Entry("a word for a switch", "zones: {z: {outage: yes please}}", "faults.yaml.zones.z.outage", "bool"),
	)

	It("are refused under another key, which is a typing error", func() {
		_, err := ParseFaults(map[string]string{"fault.yaml": ""})
		Expect(err).To(MatchError(ContainSubstring("write faults.yaml")))
	})

	It("knows every machine code", func() {
		for c := codes.Canceled; c <= codes.Uninitialized; c++ {
			faults, err := parse("zones: {z: {createError: " + c.String() + "}}")
			Expect(err).NotTo(HaveOccurred())
			Expect(faults.Zones["z"].create()).To(Equal(c))
		}
	})

	It("add up, and the machine beats its class, and that the zone", func() {
		faults, err := parse(`
zones: {z: {outage: true, createError: Internal, extraBootDelay: 1s, conditions: {DiskPressure: True, PIDPressure: True}}}
classes: {c: {createError: Unavailable, ready: Unknown}}
machines: {m: {ready: False, conditions: {DiskPressure: Unknown}}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(faults.ForMachine("z", "c", "m")).To(Equal(Fault{
			Outage: true, CreateError: codes.Unavailable, ExtraBootDelay: time.Second, Ready: corev1.ConditionFalse,
			Conditions: map[corev1.NodeConditionType]corev1.ConditionStatus{
				corev1.NodeDiskPressure: corev1.ConditionUnknown, corev1.NodePIDPressure: corev1.ConditionTrue,
			},
		}))
		Expect(faults.ForMachine("z", "c", "m").create()).To(Equal(codes.Unavailable))
		Expect(faults.ForMachine("z", "", "").Conditions[corev1.NodeDiskPressure]).To(Equal(corev1.ConditionTrue), "the levels must not be mixed up")
		Expect(Fault{Outage: true}.create()).To(Equal(codes.ResourceExhausted))
	})
})
