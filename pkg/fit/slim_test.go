// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	. "github.com/evenkeel/evenkeel/pkg/fit"
)

// fullPod has something of all that a pod may have, whether package fit reads it or not.
func fullPod() *corev1.Pod {
	created := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	term := corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: zone, Namespaces: []string{"other"}}
	request := func(text string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(text), "memory": resource.MustParse("1Gi")}}
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "full", UID: "1", ResourceVersion: "7", CreationTimestamp: created, DeletionTimestamp: &created, Generation: 3,
		Labels: map[string]string{"app": "x"}, Annotations: map[string]string{"any": "thing"}, Finalizers: []string{"example.com/f"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Other", Name: "o", UID: "2"}, {Kind: "ReplicaSet", Name: "r", UID: "3", Controller: ptr.To(true)}},
	}}
	p.Spec = corev1.PodSpec{
		SchedulerName: "scheduler", Priority: ptr.To[int32](7), ServiceAccountName: "any", NodeSelector: map[string]string{zone: "a"},
		Tolerations:     []corev1.Toleration{{Key: "colour", Operator: corev1.TolerationOpExists}},
		SchedulingGates: []corev1.PodSchedulingGate{{Name: "one"}, {Name: "two"}},
		ResourceClaims:  []corev1.PodResourceClaim{{Name: "claim", ResourceClaimTemplateName: ptr.To("gpu")}}, SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: ptr.To("group")},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: zone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector},
			{MaxSkew: 1, TopologyKey: hostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector},
		},
		Affinity: &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zone, Operator: corev1.NodeSelectorOpExists}}},
				}},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}},
			},
			PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{term},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1}},
			},
			PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{term},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1}},
			},
		},
		InitContainers: []corev1.Container{{Name: "init", Resources: request("3")}},
		Containers: []corev1.Container{
			{Name: "a", Image: "any", Resources: request("1"), Ports: []corev1.ContainerPort{{HostPort: 80, HostIP: "10.0.0.1", Protocol: corev1.ProtocolUDP}, {ContainerPort: 90}}},
			{Name: "b", Resources: request("500m"), Ports: []corev1.ContainerPort{{HostPort: 1, Protocol: corev1.ProtocolTCP}}},
		},
		Volumes: []corev1.Volume{
			{Name: "claimed", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data", ReadOnly: true}}},
			{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
			{Name: "disk", VolumeSource: corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}}},
			{Name: "empty", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}
	p.Status = corev1.PodStatus{
		ResourceClaimStatuses: []corev1.PodResourceClaimStatus{{Name: "claim", ResourceClaimName: ptr.To("full-gpu")}},
		Phase:                 corev1.PodPending, NominatedNodeName: "n", PodIP: "10.1.1.1",
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionFalse},
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "any"},
			{Type: corev1.ContainersReady, Status: corev1.ConditionFalse},
		},
	}
	return p
}

// The files are what is kept of a full pod. With -update they are written anew: read what differs.
var _ = DescribeTable("What is kept of a pod",
	func(file string, slim func(*corev1.Pod) *corev1.Pod, changes ...func(*corev1.Pod)) {
		p := fullPod()
		for _, change := range changes {
			change(p)
		}
		text, err := json.MarshalIndent(slim(p), "", "  ")
		Expect(err).NotTo(HaveOccurred())
		path := filepath.Join("testdata", file)
		if *update {
			Expect(os.WriteFile(path, append(text, '\n'), 0o644)).To(Succeed())
		}
		want, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(MatchJSON(want))
	},
	Entry("that waits", "waits.json", Slim),
	Entry("that waits and may be moved", "waits.json", SlimMovable),
	Entry("that runs", "runs.json", Slim, runs),
	Entry("that runs and may be moved", "movable.json", SlimMovable, runs),
	Entry("that exceeds a limit", "large.json", Slim, tooLarge),
	Entry("that runs and exceeds a limit that matters to it alone", "unmovable.json", SlimMovable, runs, tooLarge),
)

var _ = It("Of a pod that is being resized, what it still has is kept", func() {
	for _, resized := range []func(*corev1.Pod){running("cpu=3"), asWhole("cpu=1", "cpu=3")} {
		p := pod("p", "cpu=1", resized)
		for _, slim := range []*corev1.Pod{Slim(p), SlimMovable(p)} {
			Expect(slim.Spec.Containers[0].Resources.Requests.Cpu().Value()).To(BeEquivalentTo(3))
		}
	}
})

var _ = It("Of a pod with one scheduling gate, the gate is kept", func() {
	p := pod("p", "", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "one"}} })
	Expect(Slim(p).Spec.SchedulingGates).To(HaveLen(1))
})

var _ = It("Affinity that requires nothing is not kept", func() {
	p := pod("p", "", func(p *corev1.Pod) {
		preferred := []corev1.WeightedPodAffinityTerm{{Weight: 1}}
		p.Spec.Affinity = &corev1.Affinity{
			PodAffinity:     &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred},
			PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred},
		}
	})
	Expect(Slim(p).Spec.Affinity).To(BeNil())
	Expect(read(p).Shape()).To(Equal(read(pod("p", "")).Shape()))
})

var _ = It("An owner is kept, unless the reference to it is absurdly long", func() {
	owned := func(kind int) (size int, kept []metav1.OwnerReference) {
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: strings.Repeat("x", kind), Name: "r", UID: "3", Controller: ptr.To(true)}
		return owner.Size(), Slim(pod("p", "", func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{owner} })).OwnerReferences
	}
	room := sort.Search(MaxBytes, func(n int) bool { size, _ := owned(n); return size >= MaxBytes/8 })
	_, kept := owned(room)
	Expect(kept).To(BeEmpty())
	_, kept = owned(room - 1)
	Expect(kept).To(HaveLen(1))
})

var _ = It("The name of a scheduler is kept up to a length that none has", func() {
	named := func(n int) string {
		return Slim(pod("p", "", func(p *corev1.Pod) { p.Spec.SchedulerName = strings.Repeat("x", n) })).Spec.SchedulerName
	}
	Expect(named(MaxBytes / 8)).To(HaveLen(MaxBytes / 8))
	Expect(named(MaxBytes/8 + 1)).To(HaveLen(MaxBytes / 8))
})

// numerous has a pod say n times the same, or nearly.
var numerous = map[string]struct {
	limit int
	pod   func(n int) *corev1.Pod
}{
	"containers": {MaxContainers, func(n int) *corev1.Pod {
		return pod("p", "", func(p *corev1.Pod) {
			p.Spec.Containers, p.Spec.InitContainers = make([]corev1.Container, n-2), make([]corev1.Container, 2)
		})
	}},
	"requests": {MaxRequests, func(n int) *corev1.Pod {
		p := pod("p", "cpu=1", initially("memory=1", false))
		for i := range n - 2 {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprint("example.com/", i))] = resource.MustParse("1")
		}
		return p
	}},
	"pod affinity terms and topology spread constraints": {MaxRules, func(n int) *corev1.Pod {
		p := pod("p", "", apart(zone, "a"), apart(zone, "b"), together(zone, "c"), together(zone, "d"), together(zone, "e"))
		for range n - 5 {
			spread(zone, 1, "p")(p)
		}
		return p
	}},
	"tolerations": {MaxTolerations, func(n int) *corev1.Pod {
		return pod("p", "", func(p *corev1.Pod) { p.Spec.Tolerations = make([]corev1.Toleration, n) })
	}},
	"claims": {MaxClaims, func(n int) *corev1.Pod {
		return pod("p", "", func(p *corev1.Pod) {
			for range n {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}})
			}
		})
	}},
	"claims to devices": {MaxResourceClaims, func(n int) *corev1.Pod {
		return pod("p", "", wishing(slices.Repeat([]string{"one"}, n)...))
	}},
	"host ports": {MaxHostPorts, func(n int) *corev1.Pod {
		p := pod("p", "")
		for i := range n {
			listening(int32(i + 1))(p)
		}
		return p
	}},
}

var _ = It("A pod may say as much as the limit of each thing, and no more", func() {
	for what, of := range numerous {
		Expect(Slim(of.pod(of.limit)).Annotations).To(BeEmpty(), what)
		Expect(Slim(of.pod(of.limit + 1)).Annotations).To(HaveKeyWithValue("fit/unread", fmt.Sprintf("has more than %d %s", of.limit, what)))
	}
})

var _ = It("A slim pod takes as many bytes as the limit, and no more, including the names of what it requests", func() {
	size := func(slim *corev1.Pod) int {
		n := 0
		for name := range slim.Spec.Containers[0].Resources.Requests {
			n += len(name)
		}
		slim.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		return n + slim.Size()
	}
	sized := func(label int) *corev1.Pod {
		return Slim(pod("p", "cpu=1 memory=1 example.com/long-name=1", func(p *corev1.Pod) { p.Labels["text"] = strings.Repeat("x", label) }))
	}
	most := sort.Search(MaxBytes, func(n int) bool { return sized(n).Annotations != nil }) - 1
	Expect(size(sized(most))).To(Equal(MaxBytes))
})

func runs(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n", corev1.PodRunning }

// tooLarge has a pod tolerate more than is read of it.
func tooLarge(p *corev1.Pod) {
	p.Spec.Tolerations = make([]corev1.Toleration, MaxTolerations+1)
}

func tolerantOf(n int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for i := range n {
			tolerant(fmt.Sprint("key", i))(p)
		}
	}
}

// largest are legal pods that say as much as they can of one thing.
var largest = map[string]func(p *corev1.Pod){
	"annotations": func(p *corev1.Pod) { p.Annotations = map[string]string{"a": strings.Repeat("x", 256<<10)} },
	"environment": func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: strings.Repeat("x", 1<<20)}}
	},
	"volumes that every node has": func(p *corev1.Pod) {
		p.Spec.Volumes = slices.Repeat([]corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}, 5000)
	},
	"preferences": func(p *corev1.Pod) {
		affinity(p).NodeAffinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: make([]corev1.PreferredSchedulingTerm, 5000)}
	},
	"soft constraints": func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = slices.Repeat([]corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zone, WhenUnsatisfiable: corev1.ScheduleAnyway}}, 5000)
	},
}

// excessive are legal pods that pass a bound.
var excessive = map[string]func(p *corev1.Pod){
	"topology spread constraints": func(p *corev1.Pod) {
		for i := range 100 {
			spread(fmt.Sprint("key", i), 1, "p")(p)
		}
	},
	"anti-affinity": func(p *corev1.Pod) {
		for i := range 5000 {
			apart(fmt.Sprint("key", i), "p")(p)
		}
	},
	"affinity": func(p *corev1.Pod) {
		for i := range 5000 {
			together(fmt.Sprint("key", i), "p")(p)
		}
	},
	"tolerations":   tolerantOf(5000),
	"labels":        func(p *corev1.Pod) { p.Labels = textOf(5000) },
	"node selector": func(p *corev1.Pod) { p.Spec.NodeSelector = textOf(5000) },
	"node affinity": func(p *corev1.Pod) {
		e := corev1.NodeSelectorRequirement{Key: zone, Operator: corev1.NodeSelectorOpIn, Values: slices.Repeat([]string{"elsewhere"}, 5000)}
		affinity(p).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{e}}}}}
	},
	"claims": func(p *corev1.Pod) {
		p.Spec.Volumes = slices.Repeat([]corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}, 5000)
	},
	"containers": func(p *corev1.Pod) {
		p.Spec.Containers = slices.Repeat(p.Spec.Containers, 10000)
	},
	"claims to devices": wishing(slices.Repeat([]string{"one"}, 5000)...),
	"requests": func(p *corev1.Pod) {
		for i := range 5000 {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprint("example.com/r", i))] = resource.MustParse("1")
		}
	},
	"host ports": func(p *corev1.Pod) {
		for i := range 5000 {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: int32(i + 1)})
		}
	},
}

func textOf(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint("key", i)] = strings.Repeat("v", 63)
	}
	return all
}

var _ = Describe("A slim pod", func() {
	// most is what a slim pod may take at all: its rules, and what identifies it.
	const most = MaxBytes + 2<<10

	It("answers as the pod does", func() {
		rapid.Check(GinkgoT(), func(t *rapid.T) {
			nodes, _, waiting := drawCluster(t)
			if rapid.Bool().Draw(t, "with devices") {
				equip(t, nodes, waiting)
			}
			whole, slim, movable := NewRoom(nodes), NewRoom(nodes), NewRoom(nodes)
			for _, p := range waiting {
				p.Spec.InitContainers = []corev1.Container{{Name: "first", Resources: corev1.ResourceRequirements{Requests: amounts("cpu=2")}}}
				a, b := read(p), read(Slim(p))
				if a.Shape() != b.Shape() || Slim(p).String() != Slim(Slim(p)).String() {
					t.Fatalf("%v is another when slim: %v", p, Slim(p))
				}
				for _, n := range nodes {
					x, y, z := whole.Ask(a, n.Object.Name), slim.Ask(b, n.Object.Name), movable.Ask(b, n.Object.Name)
					if x != y || x != z {
						t.Fatalf("%s on %s: %q, slim %q, beside movable ones %q", p.Name, n.Object.Name, x, y, z)
					}
				}
				if len(nodes) > 0 {
					p.Spec.NodeName = nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, "goes to")].Object.Name
					whole.Put(NewPod(p, nil), p.Spec.NodeName)
					slim.Put(NewPod(Slim(p), nil), p.Spec.NodeName)
					movable.Put(NewPod(SlimMovable(p), nil), p.Spec.NodeName)
					moving := SlimMovable(p)
					if moving.Spec.NodeName != p.Spec.NodeName || moving.String() != SlimMovable(moving).String() {
						t.Fatalf("%v is another when slim: %v", p, moving)
					}
					moving.Spec.NodeName = ""
					if read(moving).Shape() != a.Shape() {
						t.Fatalf("%v cannot move as it came: %v", p, moving)
					}
				}
			}
		})
	})

	It("is small, however much the pod says that decides nothing", func() {
		for what, change := range largest {
			p := Slim(pod("p", "cpu=1", change))
			Expect(p.Size()).To(BeNumerically("<", 500), what)
			Expect(read(p).Unclear).To(BeEmpty(), what)
			Expect(read(p).Shape()).To(Equal(read(pod("p", "cpu=1")).Shape()), what)
		}
	})

	It("is small, and cannot be decided, where the pod says too much that decides", func() {
		for what, change := range excessive {
			for _, p := range []*corev1.Pod{pod("p", "cpu=1", change), Slim(pod("p", "cpu=1", change))} {
				Expect(read(p).Unclear).NotTo(BeEmpty(), what)
				Expect(read(p).Object.Size()).To(BeNumerically("<", most), what)
				Expect(On(read(p), node("n"))).To(Equal(Undecided), what)
				Expect(Slim(Slim(p)).String()).To(Equal(Slim(p).String()), what)
			}
		}
	})

	It("that runs cannot be decided elsewhere where it says too much that decides, and counts for others as it would otherwise", func() {
		for what, change := range excessive {
			running := pod("p", "cpu=1", change, func(p *corev1.Pod) { p.Spec.NodeName = "n" })
			p := SlimMovable(running)
			Expect(p.Size()).To(BeNumerically("<", most), what)
			Expect(read(p).Unclear).NotTo(BeEmpty(), what)
			Expect(SlimMovable(p).String()).To(Equal(p.String()), what)
			p.Annotations = Slim(running).Annotations
			Expect(p.String()).To(Equal(Slim(running).String()), what)
		}
	})

	DescribeTable("keeps when it was bound, if it has waited", func(waited time.Duration, status corev1.ConditionStatus, kept bool) {
		p := pod("p", "cpu=3")
		p.CreationTimestamp = metav1.NewTime(time.Unix(1_800_000_000, 0))
		at := metav1.NewTime(p.CreationTimestamp.Add(waited))
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status, LastTransitionTime: at}}
		slim := Slim(Slim(p))
		Expect(slim.Status.Conditions).To(HaveLen(1))
		Expect(slim.Status.Conditions[0].LastTransitionTime.Equal(&at)).To(Equal(kept))
	},
		Entry("for a minute", time.Minute, corev1.ConditionTrue, true),
		Entry("for two seconds", 2*time.Second, corev1.ConditionTrue, true),
		Entry("not if it has not", time.Second, corev1.ConditionTrue, false),
		Entry("not if it waits", time.Minute, corev1.ConditionFalse, false),
	)

	It("keeps its name, owner, state and what it requests", func() {
		p := pod("p", "cpu=3", excessive["labels"])
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "a", UID: "a", Controller: ptr.To(true)}, {Kind: "Other", Name: strings.Repeat("x", 1<<20)}}
		p.Spec.SchedulerName = strings.Repeat("x", 1<<20)
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, Message: strings.Repeat("x", 1<<20), Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: strings.Repeat("x", 1<<20)},
		}}
		slim := Slim(p)
		Expect(slim.Size()).To(BeNumerically("<", most))
		Expect(slim.OwnerReferences).To(HaveLen(1))
		Expect(slim.Status.Conditions).To(ConsistOf(HaveField("Reason", corev1.PodReasonUnschedulable)))
		Expect(slim.Spec.Containers[0].Resources.Requests.Cpu().Value()).To(BeEquivalentTo(3))
	})
})

var _ = DescribeTable("A pod that says too much, and runs, leaves no more than it would otherwise",
	func(p *corev1.Pod, runs func(*corev1.Pod)) {
		for what, change := range excessive {
			running := pod("large", "", change, runs, namespaced("other"), func(p *corev1.Pod) { p.Spec.NodeName = "n" })
			room := NewRoom([]Node{{Object: node("n", has("example.com/gpu=2")), Pods: []*Pod{NewPod(Slim(running), nil)}}})
			Expect(room.Ask(read(p), "n")).To(Equal(Full), what)
		}
	},
	Entry("of a device", pod("p", "example.com/gpu=1"), func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = amounts("example.com/gpu=2") }),
	Entry("beside what its sidecar requests", pod("p", "cpu=2"), initially("cpu=3", true)),
	Entry("beside what an init container requests", pod("p", "cpu=2"), initially("cpu=3", false)),
	Entry("beside its overhead", pod("p", "cpu=2"), func(p *corev1.Pod) { p.Spec.Overhead = amounts("cpu=3") }),
	Entry("beside what it requests as a whole", pod("p", "cpu=2"), func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu=3")} }),
	Entry("while it is resized", pod("p", "cpu=2"), asWhole("cpu=1", "cpu=3")),
)

var _ = DescribeTable("Beside a pod that says too much, one",
	func(want Obstacle, p *corev1.Pod, there func(*corev1.Pod), change ...func(*corev1.Pod)) {
		running := pod("large", "", append(change, there, func(p *corev1.Pod) { p.Spec.NodeName = "n" })...)
		room := NewRoom([]Node{{Object: node("n"), Pods: []*Pod{NewPod(Slim(running), nil)}}, {Object: node("m")}})
		Expect(room.Ask(read(p), "m")).To(Equal(want))
	},
	Entry("of its namespace cannot be decided", Undecided, pod("p", ""), excessive["anti-affinity"]),
	Entry("of another namespace can", Fits, pod("p", "", namespaced("other")), excessive["anti-affinity"]),
	Entry("of another namespace cannot where that may be named", Undecided, pod("p", "", namespaced("other")), excessive["anti-affinity"], apart(hostname, "p", anyNamespace)),
	Entry("that may name it cannot", Undecided, pod("p", "", namespaced("other"), apart(hostname, "large", anyNamespace)), excessive["labels"]),
	Entry("that may have to be with it cannot", Undecided, pod("p", "", namespaced("other"), together(hostname, "large", anyNamespace)), excessive["labels"]),
	Entry("that names others can", Fits, pod("p", "", namespaced("other"), apart(hostname, "large")), excessive["labels"]),
	Entry("is not concerned by what decides nothing of others", Fits, pod("p", ""), excessive["tolerations"]),
)
