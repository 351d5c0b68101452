// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/pkg/fit/devices"
)

// A row of devices is written as their models, as in "aab". The node of a machine with a row offers what the node of the
// name row-aab does, which exists only in the inventory.

var rows = []string{"", "a", "ab", "bba", "aabb", "aaaaaaaa"}

const rowPrefix = "row-"

// row has a node offer devices.
func row(models string) func(*corev1.Node) {
	return func(n *corev1.Node) { devices.Like(n, rowPrefix+models) }
}

// wish is what a template requests: a number of devices of a model, of any if it has no name; or else a number of others.
type wish struct {
	n     int64
	model string
	or    []wish
	// alike are of the same model.
	alike bool
}

var wishes = map[string]wish{
	"one": {n: 1}, "two": {n: 2}, "b": {n: 1, model: "b"}, "pair": {n: 2, alike: true},
	"either": {or: []wish{{n: 2, model: "a"}, {n: 1, model: "b"}}},
}

func selector(model string) []resourceapi.DeviceSelector {
	if model == "" {
		return nil
	}
	return []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf(`device.attributes["example.com"].model == %q`, model)}}}
}

func (w wish) spec() (spec resourceapi.ResourceClaimSpec) {
	request := resourceapi.DeviceRequest{Name: "r"}
	for i, o := range w.or {
		request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{
			Name: fmt.Sprint(i), DeviceClassName: "any", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: o.n, Selectors: selector(o.model),
		})
	}
	if len(w.or) == 0 {
		request.Exactly = &resourceapi.ExactDeviceRequest{DeviceClassName: "any", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: w.n, Selectors: selector(w.model)}
	}
	spec.Devices.Requests = []resourceapi.DeviceRequest{request}
	if w.alike {
		spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To[resourceapi.FullyQualifiedName]("example.com/model")}}
	}
	return spec
}

// choices are all ways to grant a wish from devices, by their numbers, the first ones first.
func (w wish) choices(models string, taken []int) (all [][]int) {
	for _, o := range w.or {
		all = append(all, o.choices(models, taken)...)
	}
	if len(w.or) > 0 {
		return all
	}
	var extend func(chosen []int)
	extend = func(chosen []int) {
		if int64(len(chosen)) == w.n {
			all = append(all, slices.Clone(chosen))
			return
		}
		from := 0
		if len(chosen) > 0 {
			from = chosen[len(chosen)-1] + 1
		}
		for i := from; i < len(models); i++ {
			model := models[i : i+1]
			if !slices.Contains(taken, i) && (w.model == "" || w.model == model) && (!w.alike || len(chosen) == 0 || models[chosen[0]] == models[i]) {
				extend(append(chosen, i))
			}
		}
	}
	extend(nil)
	return all
}

// choose are the first devices that grant all wishes.
func choose(models string, taken []int, wishes []wish) (chosen []int, ok bool) {
	if len(wishes) == 0 {
		return nil, true
	}
	for _, c := range wishes[0].choices(models, taken) {
		if rest, ok := choose(models, slices.Concat(taken, c), wishes[1:]); ok {
			return slices.Concat(c, rest), true
		}
	}
	return nil, false
}

// wishing has a pod claim devices, by the names of templates.
func wishing(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprint("c", len(p.Spec.ResourceClaims)), ResourceClaimTemplateName: &name})
		}
	}
}

// equip gives nodes devices, and claims to pods.
func equip(t *rapid.T, nodes []Node, waiting []*corev1.Pod) {
	names := slices.Sorted(maps.Keys(wishes))
	claim := func(p *corev1.Pod) {
		for range rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(t, "claims") {
			wishing(rapid.SampledFrom(names).Draw(t, "template"))(p)
		}
	}
	for _, n := range nodes {
		row(rapid.SampledFrom(rows[:5]).Draw(t, "row"))(n.Object)
		for i, p := range n.Pods {
			claim(p.Object)
			n.Pods[i] = read(p.Object)
		}
	}
	for _, p := range waiting {
		claim(p)
	}
}

// wishesOf are what a pod claims.
func wishesOf(p *corev1.Pod) (all []wish) {
	for _, c := range p.Spec.ResourceClaims {
		all = append(all, wishes[*c.ResourceClaimTemplateName])
	}
	return all
}

// unequipped reports whether a node has too few devices for a pod, after those that came before took theirs.
func (r reference) unequipped(p *corev1.Pod, n *corev1.Node) bool {
	models := strings.TrimPrefix(n.Annotations["devices/like"], rowPrefix)
	var taken []int
	for _, other := range r.runs[n.Name] {
		chosen, _ := choose(models, taken, wishesOf(other))
		taken = append(taken, chosen...)
	}
	_, ok := choose(models, taken, wishesOf(p))
	return !ok
}

// stock is an inventory with all rows and templates, and what else is listed.
func stock(change ...func(*devices.Listing)) *devices.Inventory {
	var l devices.Listing
	l.Classes = []*resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "any"}}}
	for _, models := range rows {
		s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: rowPrefix + models}}
		s.Spec = resourceapi.ResourceSliceSpec{Driver: "example.com", NodeName: &s.Name, Pool: resourceapi.ResourcePool{Name: s.Name, Generation: 1, ResourceSliceCount: 1}}
		for i := range models {
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: fmt.Sprint("d", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"model": {StringValue: ptr.To(models[i : i+1])},
			}})
		}
		l.Slices = append(l.Slices, s)
	}
	for name, w := range wishes {
		t := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		t.Spec.Spec = w.spec()
		l.Templates = append(l.Templates, t)
	}
	for _, f := range change {
		f(&l)
	}
	return devices.New(l, compiled)
}

var (
	compiled = devices.NewSelectors()
	stocked  = stock()
)

// ownClaim is one by name.
func ownClaim(name, of string, change ...func(*resourceapi.ResourceClaim)) func(*devices.Listing) {
	return func(l *devices.Listing) {
		c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}, Spec: wishes[of].spec()}
		for _, f := range change {
			f(c)
		}
		l.Claims = append(l.Claims, c)
	}
}

// allocatedOn gives a claim the first device of a row, on a node.
func allocatedOn(node, models string) func(*resourceapi.ResourceClaim) {
	return func(c *resourceapi.ResourceClaim) {
		c.Status.Allocation = &resourceapi.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}}}
		c.Status.Allocation.Devices.Results = []resourceapi.DeviceRequestAllocationResult{{Driver: "example.com", Pool: rowPrefix + models, Device: "d0"}}
	}
}

// byName has a pod use a claim.
func byName(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: &name})
	}
}

var _ = DescribeTable("A pod that claims devices, on node n",
	func(want Obstacle, p *corev1.Pod, nodes ...Node) {
		Expect(NewRoom(nodes).Ask(read(p), "n")).To(Equal(want))
	},
	Entry("there is one", Fits, pod("p", "", wishing("one")), on(node("n", row("a")))),
	Entry("there is none", NoDevices, pod("p", "", wishing("one")), on(node("n"))),
	Entry("there are too few", NoDevices, pod("p", "", wishing("one", "one")), on(node("n", row("a")))),
	Entry("another pod that waits gets it", NoDevices, pod("p", "", wishing("one")), on(node("n", row("a")), pod("q", "", wishing("one")))),
	Entry("a pod on another node gets one there", Fits, pod("p", "", wishing("one")), on(node("n", row("a"))), on(node("m", row("a")), pod("q", "", wishing("one")))),
	Entry("another pod gets the other one", Fits, pod("p", "", wishing("b")), on(node("n", row("ab")), pod("q", "", wishing("one")))),
	Entry("another pod that gets none takes none", Fits, pod("p", "", wishing("one")), on(node("n", row("a")), pod("q", "", wishing("two")))),
	Entry("not of the model", NoDevices, pod("p", "", wishing("b")), on(node("n", row("a")))),
	Entry("not of one model", NoDevices, pod("p", "", wishing("pair")), on(node("n", row("ab")))),
	Entry("the other alternative", Fits, pod("p", "", wishing("either")), on(node("n", row("ab")))),
	Entry("no CPU either", Full, pod("p", "cpu=5", wishing("one")), on(node("n"))),
	Entry("kept away, too", Repelled, pod("p", "", wishing("one"), apart(hostname, "q")), on(node("n"), pod("q", ""))),
	Entry("no template", Undecided, pod("p", "", wishing("none")), on(node("n", row("a")))),
)

var _ = Describe("Claims to devices", func() {
	lookups := func(v Devices) *Lookups { return &Lookups{Devices: v} }

	It("are not decided where nothing is known about devices", func() {
		Expect(NewPod(pod("p", "", wishing("one")), &Lookups{}).Unclear).To(Equal("it claims devices"))
		Expect(Read(pod("p", "", wishing("one")), true).Unclear).To(Equal("it claims devices"))
		Expect(Read(pod("p", "", wishing("one")), false).Unclear).To(BeEmpty())
	})

	It("are not decided for a pod that has a node and may move", func() {
		Expect(read(pod("p", "", wishing("one"), runs)).Unclear).To(Equal("it claims devices"))
	})

	It("are not all that can be unclear", func() {
		Expect(read(pod("p", "", wishing("one"), apart(hostname, "q", someNamespaces))).Unclear).To(ContainSubstring("namespaces"))
		Expect(read(pod("p", "", wishing("one"), byName("none"))).Unclear).To(Equal("its claim none does not exist"))
		located := NewPod(pod("p", "", wishing("none"), claiming("data")), &Lookups{Devices: stocked, Claim: cluster{}.lookups().Claim})
		Expect(located.Unclear).To(Equal("its claim template none does not exist"))
	})

	It("keep a pod where they are allocated", func() {
		v := stock(ownClaim("mine", "one", allocatedOn("m", "a")))
		p := NewPod(pod("p", "", byName("mine")), lookups(v))
		r := NewRoom(open(node("n", row("a")), node("m", row("a"))))
		Expect([]Obstacle{r.Ask(p, "n"), r.Ask(p, "m")}).To(Equal([]Obstacle{AllocatedElsewhere, Fits}))
		Expect([]Obstacle{On(p, node("n", row("a"))), On(p, node("m"))}).To(Equal([]Obstacle{AllocatedElsewhere, Fits}))
	})

	It("take no devices twice that are allocated", func() {
		v := stock(ownClaim("mine", "one", allocatedOn("m", "a")))
		r := NewRoom(open(node("m", row("a"))))
		r.Put(NewPod(pod("p", "", byName("mine")), lookups(v)), "m")
		Expect(r.Ask(NewPod(pod("q", "", wishing("one")), lookups(v)), "m")).To(Equal(Fits), "a machine that boots has its own")
	})

	It("are possible where the devices of a node are enough, whatever runs there", func() {
		v := stock(ownClaim("theirs", "one", allocatedOn(rowPrefix+"a", "a")))
		n := node(rowPrefix + "a")
		Expect(NewRoom(open(n)).Ask(NewPod(pod("p", "", wishing("one")), lookups(v)), n.Name)).To(Equal(NoDevices))
		Expect(On(NewPod(pod("p", "", wishing("one")), lookups(v)), n)).To(Equal(Fits))
		Expect(On(NewPod(pod("p", "", wishing("two")), lookups(v)), n)).To(Equal(NoDevices))
		Expect(On(NewPod(pod("p", "cpu=9", wishing("two")), lookups(v)), n)).To(Equal(Full))
	})

	It("are part of a pod's shape", func() {
		v := stock(ownClaim("mine", "one"), ownClaim("yours", "one"))
		shape := func(change ...func(*corev1.Pod)) string { return NewPod(pod("p", "", change...), lookups(v)).Shape() }
		Expect(shape(wishing("one"))).To(Equal(shape(wishing("one"))))
		all := []string{shape(), shape(wishing("one")), shape(wishing("two")), shape(byName("mine")), shape(byName("yours"))}
		slices.Sort(all)
		Expect(slices.Compact(all)).To(HaveLen(5))
	})

	It("give devices back that a pod took, and no others", func() {
		r := NewRoom(open(node("n", row("ab"))))
		one, another, b := read(pod("p", "", wishing("one"))), read(pod("q", "", wishing("one"))), read(pod("r", "", wishing("b")))
		r.Put(one, "n")
		r.Put(another, "n")
		Expect(r.Ask(b, "n")).To(Equal(NoDevices))
		r.Remove(one, "n") // it has a
		Expect([]Obstacle{r.Ask(b, "n"), r.Ask(one, "n")}).To(Equal([]Obstacle{NoDevices, Fits}))
		r.Remove(one, "n")
		r.Remove(another, "n")
		Expect(r.Ask(b, "n")).To(Equal(Fits))
	})

	It("give the last devices back first of a pod that was put twice", func() {
		r := NewRoom(open(node("n", row("ab"))))
		p, b := read(pod("p", "", wishing("one"))), read(pod("r", "", wishing("b")))
		r.Put(p, "n")
		r.Put(p, "n")
		r.Remove(p, "n")
		Expect(r.Ask(b, "n")).To(Equal(Fits))
	})

	It("are not decided beside a pod whose devices are not known", func() {
		v := stock(func(l *devices.Listing) {
			l.Slices[1].Spec.Devices = append(l.Slices[1].Spec.Devices, l.Slices[1].Spec.Devices[0])
			l.Slices[1].Spec.Devices[1].Name, l.Slices[1].Spec.Devices[1].AllowMultipleAllocations = "d1", ptr.To(true)
		})
		one, two := NewPod(pod("p", "", wishing("one")), lookups(v)), NewPod(pod("q", "", wishing("two")), lookups(v))
		r := NewRoom(open(node("n", row("a"))))
		Expect([]Obstacle{r.Ask(one, "n"), r.Ask(two, "n")}).To(Equal([]Obstacle{Fits, Undecided}))
		r.Put(two, "n")
		Expect(r.Ask(one, "n")).To(Equal(Undecided))
		Expect(r.Ask(read(pod("r", "")), "n")).To(Equal(Fits))
		r.Remove(two, "n")
		Expect(r.Ask(one, "n")).To(Equal(Fits))
	})

	It("open a machine for the devices that it has", func() {
		nodes, g := reserve("g", 3, row("ab"))
		p := pack(NewRoom(slices.Concat(open(node("n", row("a"))), nodes)), many(4, "p", "", wishing("one")), []Group{g})
		Expect(where(p)).To(Equal("g-0: p-1 p-2, g-1: p-3, n: p-0"))
		Expect(p.Opened).To(Equal([]int{2}))
	})

	It("count for pods that will be created, if each has one of its own", func() {
		nodes, g := reserve("g", 3, row("ab"))
		v := stock(ownClaim("mine", "one"))
		for like, want := range map[*Pod]int{read(pod("p", "", wishing("one"))): 5, NewPod(pod("p", "", byName("mine")), lookups(v)): 0} {
			p := Pack(NewRoom(nodes), Demand{Pods: []*Pod{like}, Uncreated: []Uncreated{{Like: like, Count: 9}}}, []Group{g})
			Expect(where(p)).To(Equal("g-0: p"))
			created := 0
			for _, n := range p.Uncreated {
				created += n
			}
			Expect(created).To(Equal(want))
		}
	})

	It("that a budget does not suffice to look at are not finished, and are looked at again", func() {
		d := Demand{Budget: 20, Pods: append(many(4, "plain", "", important(1)), NewPod(pod("p", ""), lookups(costly(100))))}
		r := NewRoom(open(node("n")))
		p := Pack(r, d, nil)
		Expect(p.Left).To(BeEmpty())
		Expect(p.Unfinished).To(ConsistOf(HaveField("Object.Name", "p")))
		p = Pack(r, Demand{Pods: d.Pods[4:]}, nil)
		Expect(where(p)).To(Equal("n: p"))
		Expect(p.Work).To(BeNumerically("~", 100, 5), "it is remembered what was asked")
	})

	It("cost no more than there is", func() {
		v := stock(func(l *devices.Listing) {
			for i := range 500 {
				t := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "crowd", Name: fmt.Sprint("t", i)}}
				t.Spec.Spec = wishes["pair"].spec()
				e := t.Spec.Spec.Devices.Requests[0].Exactly
				e.Selectors = slices.Repeat(selector(fmt.Sprint(i)), 8)
				e.Selectors[0].CEL.Expression = fmt.Sprintf(`[%d].all(a, device.attributes.all(b, device.attributes.all(c, a > -1)))`, i)
				l.Templates = append(l.Templates, t)
			}
		})
		var d Demand
		for i := range 500 {
			d.Pods = append(d.Pods, NewPod(pod("x", "", wishing(fmt.Sprint("t", i)), namespaced("crowd"), important(1)), lookups(v)))
		}
		d.Pods = append(d.Pods, NewPod(pod("neighbour", "", wishing("one")), lookups(v)))
		nodes, g := reserve("g", 20, row("aabb"))
		p := Pack(NewRoom(nodes), d, []Group{g})
		Expect(p.Work).To(BeNumerically("<=", affordable(MaxWork)))
		Expect(p.Unfinished).To(HaveEach(HaveField("Object.Namespace", "crowd")))
		Expect(p.Places).To(ContainElement(HaveField("Pod.Object.Name", "neighbour")))
	})
})

// costly are claims to a device that it costs so much to choose.
type costly int

func (c costly) Claimed(*corev1.Pod) (Claims, error) { return c, nil }
func (c costly) Shape() string                       { return fmt.Sprint(int(c)) }
func (c costly) Repeatable() bool                    { return true }
func (c costly) Reaches(*corev1.Node) bool           { return true }
func (c costly) Possible(*corev1.Node) Obstacle      { return Fits }

func (c costly) Allocate(_ *corev1.Node, _ []Device, limit int) Allocation {
	if limit < int(c) {
		return Allocation{Obstacle: Undecided, Unfinished: true}
	}
	return Allocation{Devices: []Device{"a/b/c"}, Work: int(c)}
}

var _ = It("total: a claim of any kind is answered", func() {
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "any", "model", "a/b", "true", "device.attributes", "🛶", "/"})
		count := rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, math.MaxInt64})
		spec := resourceapi.ResourceClaimSpec{}
		for range rapid.IntRange(0, 3).Draw(t, "requests") {
			e := &resourceapi.ExactDeviceRequest{DeviceClassName: rapid.SampledFrom([]string{"any", "any", ""}).Draw(t, "class"), Count: count.Draw(t, "count")}
			e.AllocationMode = rapid.SampledFrom([]resourceapi.DeviceAllocationMode{"", "All", "ExactCount", "Most"}).Draw(t, "mode")
			if rapid.Bool().Draw(t, "selects") {
				e.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: text.Draw(t, "expression")}}}
			}
			r := resourceapi.DeviceRequest{Name: text.Draw(t, "request"), Exactly: e}
			if rapid.IntRange(0, 3).Draw(t, "alternatives") == 0 {
				r.Exactly, r.FirstAvailable = nil, []resourceapi.DeviceSubRequest{{Name: text.Draw(t, "sub"), DeviceClassName: e.DeviceClassName, AllocationMode: e.AllocationMode, Count: e.Count}}
			}
			spec.Devices.Requests = append(spec.Devices.Requests, r)
		}
		if rapid.Bool().Draw(t, "constrained") {
			spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(text.Draw(t, "attribute")))}}
		}
		v := stock(ownClaim("c", "one", func(c *resourceapi.ResourceClaim) { c.Spec = spec }), func(l *devices.Listing) {
			s := l.Slices[2]
			s.Spec.Pool.ResourceSliceCount, s.Spec.Pool.Name = count.Draw(t, "slices"), text.Draw(t, "pool")
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{}, resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"": {}}})
			l.Slices = append(l.Slices, &resourceapi.ResourceSlice{}, &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{NodeSelector: &corev1.NodeSelector{}}})
		})
		p := NewPod(pod("p", "", byName("c")), &Lookups{Devices: v})
		On(p, node("n", row("ab")))
		nodes, g := reserve("g", 2, row(rapid.SampledFrom(rows).Draw(t, "row")))
		pack(NewRoom(nodes), []*Pod{p, p}, []Group{g})
	})
})
