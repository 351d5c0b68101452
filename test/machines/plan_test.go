// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/pkg/provider/virtual"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// vm is a real machine that was created a minute ago, in zone z and with class c.
func vm(name string, delay time.Duration) virtual.VM {
	return virtual.VM{Name: name, Class: "c", Created: now.Add(-time.Minute), BootDelay: delay, Hardware: virtual.Hardware{Zone: "z", Real: true}}
}

// tell describes a plan, in the order of names.
func tell(p plan) (words []string) {
	for _, v := range p.boot {
		words = append(words, "boot "+v.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(p.end)) {
		words = append(words, map[bool]string{false: "end ", true: "forget "}[p.end[name]]+name)
	}
	for _, name := range slices.Sorted(maps.Keys(p.suffer)) {
		if h := p.suffer[name]; h != (harm{}) {
			words = append(words, fmt.Sprintf("%s cut=%t halted=%t", name, h.cut, h.halted))
		}
	}
	if p.again > 0 {
		words = append(words, "again in "+p.again.String())
	}
	return words
}

var _ = DescribeTable("The plan for a machine",
	func(v virtual.VM, faults string, running map[string]string, want ...string) {
		f, err := virtual.ParseFaults(map[string]string{virtual.FaultsKey: faults})
		Expect(err).NotTo(HaveOccurred())
		s := state{vms: map[string]virtual.VM{}, faults: f}
		if v.Name != "" {
			s.vms[v.Name] = v
		}
		Expect(tell(newPlan(s, running, now))).To(HaveExactElements(want))
	},
	Entry("boots it when it is due", vm("a", time.Minute), "", nil, "boot a"),
	Entry("waits until it is", vm("a", 90*time.Second), "", nil, "again in 30s"),
	Entry("waits longer for a slow boot", vm("a", 0), "{zones: {z: {extraBootDelay: 2m}}}", nil, "again in 1m0s"),
	Entry("does not boot it while it is cut off", vm("a", 0), "{machines: {a: {ready: Unknown}}}", nil),
	Entry("leaves it alone while it runs", vm("a", 0), "", map[string]string{"a": vm("a", 0).ProviderID()}),
	Entry("boots it again when it has ended by itself", vm("a", 0), "", map[string]string{"a": ""}, "end a"),
	Entry("forgets it when its record is gone", virtual.VM{}, "", map[string]string{"a": vm("a", 0).ProviderID()}, "forget a"),
	Entry("forgets another one that had its name", vm("a", 0), "", map[string]string{"a": "virtual:///z/a/before"}, "forget a"),
	Entry("ends it when it dies, and keeps its Node", vm("a", 0), "{classes: {c: {dead: true}}}", map[string]string{"a": vm("a", 0).ProviderID()}, "end a"),
	Entry("does not boot one that is dead", virtual.VM{Name: "a", Dead: true}, "", nil),
	Entry("cuts it off", vm("a", 0), "{machines: {a: {ready: Unknown}}}", map[string]string{"a": vm("a", 0).ProviderID()}, "a cut=true halted=false"),
	Entry("halts its runtime", vm("a", 0), "{machines: {a: {ready: False}}}", map[string]string{"a": vm("a", 0).ProviderID()}, "a cut=false halted=true"),
)

var _ = Describe("What the records say", func() {
	It("is of real machines alone, with the registry, and what cannot be read harms no other", func() {
		record := func(name, text string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{virtual.RecordLabel: "true"}}, Data: map[string]string{"machine.json": text}}
		}
		s, err := readState([]*corev1.ConfigMap{
			record("virtual-machine-real", `{"name":"real","class":"c","hardware":{"real":true}}`),
			record("virtual-machine-played", `{"name":"played","class":"c","hardware":{}}`),
			record("virtual-machine-broken", `{`),
			{ObjectMeta: metav1.ObjectMeta{Name: virtual.FaultsConfigMap}, Data: map[string]string{virtual.FaultsKey: "{registry: {bandwidth: 50M, latency: 20ms}}"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "another"}},
		}, virtual.Faults{})
		Expect(err).To(MatchError(ContainSubstring("virtual-machine-broken")))
		Expect(s.vms).To(And(HaveLen(1), HaveKey("real")))
		Expect(s.faults.Registry).To(Equal(virtual.Registry{Bandwidth: 50e6, Latency: 20 * time.Millisecond}))
	})

	It("are the last faults where those that are written are invalid, and none where there are none", func() {
		last := virtual.Faults{Registry: virtual.Registry{Down: true}}
		faults := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: virtual.FaultsConfigMap}, Data: map[string]string{virtual.FaultsKey: "{zones: 1}"}}
		s, err := readState([]*corev1.ConfigMap{faults}, last)
		Expect(err).To(HaveOccurred())
		Expect(s.faults).To(Equal(last))
		s, err = readState(nil, last)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.faults).To(Equal(virtual.Faults{}))
	})
})
