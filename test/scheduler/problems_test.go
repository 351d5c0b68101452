// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// problem is a cluster with pods that wait, as hack/localcluster/devices reads it.
type problem struct {
	Nodes   []*corev1.Node
	Slices  []*resourceapi.ResourceSlice
	Classes []*resourceapi.DeviceClass
	Claims  []*resourceapi.ResourceClaim
	Pods    []*corev1.Pod
	// templates are of the claims that were made for pods.
	templates []*resourceapi.ResourceClaimTemplate
	// odd are the things in it that are rare.
	odd []string
}

const (
	gpu  = "gpu.example.com"
	nic  = "nic.example.com"
	root = "resource.kubernetes.io/pcieRoot"
)

// drawer draws one problem.
type drawer struct {
	*rand.Rand
	*problem
	number int
}

// drawProblem returns the problem of a seed; with only ordinary things in it, or with rare ones too.
func drawProblem(seed uint64, ordinary bool) *problem {
	d := &drawer{Rand: rand.New(rand.NewPCG(seed, 0)), problem: &problem{}}
	d.Classes = []*resourceapi.DeviceClass{
		class("gpu", `device.driver == "gpu.example.com"`), class("nic", `device.driver == "nic.example.com"`), class("any"),
		class("big", `device.driver == "gpu.example.com"`, `device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0`),
	}
	for i := range 1 + d.IntN(4) {
		d.node(fmt.Sprintf("node-%d", i))
	}
	d.running()
	for i := range 1 + d.IntN(5) {
		d.pod(fmt.Sprintf("pod-%d", i))
	}
	if !ordinary {
		for range 1 + d.IntN(2) {
			d.rarity()
		}
	}
	return d.problem
}

func class(name string, selectors ...string) *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.DeviceClassSpec{Selectors: cel(selectors...)}}
}

func cel(expressions ...string) (all []resourceapi.DeviceSelector) {
	for _, e := range expressions {
		all = append(all, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: e}})
	}
	return all
}

func (d *drawer) one(in int) bool { return d.IntN(in) == 0 }

func pick[T any](d *drawer, of ...T) T { return of[d.IntN(len(of))] }

func (d *drawer) next(prefix string) string {
	d.number++
	return fmt.Sprintf("%s-%d", prefix, d.number)
}

func (d *drawer) node(name string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: pick(d, "a", "b")}}}
	d.Nodes = append(d.Nodes, n)
	if !d.one(5) {
		d.pool(gpu, name, d.IntN(7), d.gpu)
	}
	if d.one(2) {
		d.pool(nic, name, d.IntN(4), d.nic)
	}
	if d.one(5) {
		d.partitions(name)
	}
}

// pool publishes devices in one or two slices.
func (d *drawer) pool(driver, node string, devices int, draw func(i int) resourceapi.Device) {
	parts := 1 + d.IntN(2)
	slices := make([]*resourceapi.ResourceSlice, parts)
	for i := range slices {
		slices[i] = d.slice(driver, node, node, int64(parts))
	}
	for i := range devices {
		s := slices[d.IntN(parts)]
		s.Spec.Devices = append(s.Spec.Devices, draw(i))
	}
}

func (d *drawer) slice(driver, pool, node string, count int64) *resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: d.next(fmt.Sprintf("%s-%03d", node, d.IntN(1000)))}}
	s.Spec = resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &node, Pool: resourceapi.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: count}}
	d.Slices = append(d.Slices, s)
	return s
}

func text(s string) resourceapi.DeviceAttribute { return resourceapi.DeviceAttribute{StringValue: &s} }

func (d *drawer) gpu(i int) resourceapi.Device {
	g := resourceapi.Device{Name: fmt.Sprintf("gpu-%d", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		"model": text(pick(d, "a", "b")), "uuid": text(d.next("uuid")), "index": {IntValue: ptr.To(int64(i))}, root: text(pick(d, "r0", "r1")),
		"driverVersion": {VersionValue: ptr.To(pick(d, "1.0.0", "2.1.0"))}, "healthy": {BoolValue: ptr.To(!d.one(6))},
	}, Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse(pick(d, "16Gi", "40Gi", "80Gi"))}}}
	if d.one(8) {
		g.Taints = []resourceapi.DeviceTaint{{Key: "sick", Value: "yes", Effect: pick(d, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintEffectNone)}}
	}
	return g
}

func (d *drawer) nic(i int) resourceapi.Device {
	return resourceapi.Device{Name: fmt.Sprintf("nic-%d", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		root: text(pick(d, "r0", "r1", "r2")), "model": text("n"),
	}}
}

// partitions publishes a device that can be used whole or in parts.
func (d *drawer) partitions(node string) {
	pool := node + "/parts"
	counters := d.slice(gpu, pool, node, 2)
	amount := func(text string) map[string]resourceapi.Counter {
		return map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(text)}}
	}
	counters.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "card", Counters: amount("80Gi")}}
	devices := d.slice(gpu, pool, node, 2)
	add := func(name, memory string) {
		part := d.gpu(0)
		part.Name, part.ConsumesCounters = name, []resourceapi.DeviceCounterConsumption{{CounterSet: "card", Counters: amount(memory)}}
		part.Capacity["memory"] = resourceapi.DeviceCapacity{Value: resource.MustParse(memory)}
		devices.Spec.Devices = append(devices.Spec.Devices, part)
	}
	if d.one(2) {
		add("whole", "80Gi")
	}
	for i := range 1 + d.IntN(3) {
		add(fmt.Sprintf("half-%d", i), "40Gi")
	}
	for i := range d.IntN(3) {
		add(fmt.Sprintf("quarter-%d", i), "20Gi")
	}
}

// running adds claims of pods that run.
func (d *drawer) running() {
	for _, s := range d.Slices {
		for _, device := range s.Spec.Devices {
			if d.one(4) {
				c := d.claim(d.next("running"), resourceapi.ResourceClaimSpec{})
				d.allocate(c, s, device.Name)
			}
		}
	}
}

func (d *drawer) claim(name string, spec resourceapi.ResourceClaimSpec) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "1"}, Spec: spec}
	d.Claims = append(d.Claims, c)
	return c
}

func (d *drawer) allocate(c *resourceapi.ResourceClaim, s *resourceapi.ResourceSlice, device string) {
	c.Status.Allocation = &resourceapi.AllocationResult{}
	c.Status.Allocation.Devices.Results = []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name, Device: device}}
	if s.Spec.NodeName != nil {
		c.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{*s.Spec.NodeName}}},
		}}}
	}
}

// pod adds a pod that waits, with claims by name or from templates.
func (d *drawer) pod(name string) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	d.Pods = append(d.Pods, p)
	for i := range 1 + d.IntN(4)/3 {
		entry := corev1.PodResourceClaim{Name: fmt.Sprintf("c%d", i)}
		if d.one(4) {
			entry.ResourceClaimName = &d.claim(d.next("named"), d.spec()).Name
		} else {
			d.generated(p, &entry)
		}
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, entry)
	}
	if d.one(10) {
		d.pin(p)
	}
}

// generated makes a claim of a template.
func (d *drawer) generated(p *corev1.Pod, entry *corev1.PodResourceClaim) {
	if len(d.templates) == 0 || d.one(2) {
		t := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: d.next("template")}}
		t.Spec.Spec = d.spec()
		d.templates = append(d.templates, t)
	}
	t := pick(d, d.templates...)
	c := d.claim(p.Name+"-"+entry.Name, t.Spec.Spec)
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: ptr.To(true)}}
	entry.ResourceClaimTemplateName = &t.Name
	p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: entry.Name, ResourceClaimName: &c.Name})
}

// pin allocates a device for the last claim of a pod, which it has not started with.
func (d *drawer) pin(*corev1.Pod) {
	s := d.anySlice()
	if s == nil {
		return
	}
	d.allocate(d.Claims[len(d.Claims)-1], s, s.Spec.Devices[d.IntN(len(s.Spec.Devices))].Name)
}

// anySlice returns a slice with devices.
func (d *drawer) anySlice() *resourceapi.ResourceSlice {
	var all []*resourceapi.ResourceSlice
	for _, s := range d.Slices {
		if len(s.Spec.Devices) > 0 {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return pick(d, all...)
}

func (d *drawer) spec() (spec resourceapi.ResourceClaimSpec) {
	for i := range 1 + d.IntN(5)/3 {
		r := resourceapi.DeviceRequest{Name: fmt.Sprintf("r%d", i)}
		if d.one(5) {
			for j := range 2 + d.IntN(2) {
				e := d.exactly()
				r.FirstAvailable = append(r.FirstAvailable, resourceapi.DeviceSubRequest{
					Name: fmt.Sprintf("s%d", j), DeviceClassName: e.DeviceClassName, Selectors: e.Selectors, AllocationMode: e.AllocationMode, Count: e.Count, Tolerations: e.Tolerations,
				})
			}
		} else {
			r.Exactly = d.exactly()
		}
		spec.Devices.Requests = append(spec.Devices.Requests, r)
	}
	if d.one(4) {
		spec.Devices.Constraints = append(spec.Devices.Constraints, resourceapi.DeviceConstraint{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(pick(d, root, "gpu.example.com/model")))})
	}
	if d.one(10) {
		spec.Devices.Constraints = append(spec.Devices.Constraints, resourceapi.DeviceConstraint{DistinctAttribute: ptr.To(resourceapi.FullyQualifiedName(root))})
	}
	return spec
}

func (d *drawer) exactly() *resourceapi.ExactDeviceRequest {
	e := &resourceapi.ExactDeviceRequest{DeviceClassName: pick(d, "gpu", "gpu", "gpu", "nic", "big", "any"), AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(1 + d.IntN(6)/3)}
	if d.one(12) {
		e.AllocationMode, e.Count = resourceapi.DeviceAllocationModeAll, 0
	}
	if d.one(3) && (e.DeviceClassName == "gpu" || e.DeviceClassName == "big") {
		e.Selectors = cel(pick(d,
			`device.attributes["gpu.example.com"].model == "a"`, `device.attributes["gpu.example.com"].healthy`,
			`device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("20Gi"))`, `device.attributes["gpu.example.com"].index < 3`,
			`device.attributes["gpu.example.com"].driverVersion.compareTo(semver("2.0.0")) >= 0`,
			`cel.bind(g, device.attributes["gpu.example.com"], g.model == "b" && g.index > 0)`))
	}
	if d.one(4) {
		e.Tolerations = []resourceapi.DeviceToleration{{Key: "sick", Operator: resourceapi.DeviceTolerationOpExists}}
	}
	return e
}
