// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	. "github.com/evenkeel/evenkeel/test/builders/release"
	"github.com/evenkeel/evenkeel/test/fixture"
)

func set(name string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, UID: types.UID(name)}}
}

// stored has a pod use volumes: bound ones, that can be reached from everywhere.
func (s *story) stored(name string, source corev1.VolumeSource, change ...func(*corev1.Pod)) *story {
	p := Pod(name, 1000, change...)
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
	s.Waiting = append(s.Waiting, fit.NewPod(p, &fit.Lookups{
		Claim: func(string, string) *corev1.PersistentVolumeClaim {
			return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
		},
		Volume: func(string) *corev1.PersistentVolume { return &corev1.PersistentVolume{} },
	}))
	return s
}

var (
	shared = corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}
	own    = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
)

// uncreated sets how many pods ReplicaSets have yet to create.
func (s *story) uncreated(n int, sets ...string) *story {
	return s.uncreatedIn(fixture.Namespace, n, sets...)
}

func (s *story) uncreatedIn(namespace string, n int, sets ...string) *story {
	s.Uncreated = map[types.UID]Uncreated{}
	for _, name := range sets {
		s.Uncreated[types.UID(name)] = Uncreated{Namespace: namespace, Count: n}
	}
	return s
}

// machineNames are those of the first machines in reserve of the pool a.
func machineNames(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("a-", i+1))
	}
	return strings.Join(names, " ")
}

var _ = DescribeTable("Pods that a ReplicaSet has yet to create",
	func(wantRaises, wantOutcomes string, wantUncreated int, s *story) {
		p := New(s.View)
		Expect(Raises(p)).To(Equal(wantRaises))
		Expect(outcomes(p)).To(Equal(wantOutcomes))
		uncreated := 0
		for _, r := range p.Raises {
			uncreated += r.Uncreated
		}
		Expect(uncreated).To(Equal(wantUncreated))
		Expect(p.Memory).NotTo(HaveKey(types.UID("")))
	},
	Entry("count with one of it that waits", "a+2(a-1 a-2)", "Released:1", 7,
		tell().pool("a", 1, 5, 10).full().waits(Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(7, "w")),
	Entry("count once, however many of it wait", "a+2(a-1 a-2)", "Released:3", 5,
		tell().pool("a", 1, 5, 10).full().waits(Pods(3, "p", 1000, ByReplicaSet(set("w")))...).uncreated(5, "w")),
	Entry("count for each of several", "a+3(a-1 a-2 a-3)", "Released:2", 8,
		tell().pool("a", 1, 5, 10).full().waits(Pod("p", 1000, ByReplicaSet(set("w"))), Pod("q", 1000, ByReplicaSet(set("x")))).uncreated(4, "w", "x")),
	Entry("go where there is room", "", "HasRoom:1", 0,
		tell().pool("a", 1, 5, 10).waits(Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(3, "w")),
	Entry("get a machine that the waiting pods do not need", "a+1(a-1)", "HasRoom:1", 1,
		tell().pool("a", 1, 5, 10).waits(Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(4, "w")),
	Entry("have none released beyond max", "a+1(a-1)", "Released:1", 3,
		tell().pool("a", 1, 5, 2).full().waits(Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(20, "w")),
	Entry("do not count while the scheduler has not refused one", "", "", 0,
		tell().pool("a", 1, 5, 10).full().waits(Pod("p", 1000, Untried, ByReplicaSet(set("w")))).uncreated(7, "w")),
	Entry("do not count for other waiting pods", "a+1(a-1)", "Released:1", 0,
		tell().pool("a", 1, 5, 10).full().waits(Pod("p", 1000)).uncreated(7, "w")),
	Entry("count where they share a volume", "a+2(a-1 a-2)", "Released:1", 7,
		tell().pool("a", 1, 5, 10).full().stored("p", shared, ByReplicaSet(set("w"))).uncreated(7, "w")),
	Entry("count up to a bound", fmt.Sprintf("a+46(%s)", machineNames(46)), "Released:1", MaxPods, // 110 pods each
		tell().pool("a", 1, 60, 100).full().waits(Pod("p", 10, ByReplicaSet(set("w")))).uncreated(1_000_000, "w")),
	Entry("have room that boots for replicas, one machine for each", "", "Coming:1", 0,
		tell().pool("a", 1, 0, 10, replicas(5)).pool("b", 1, 5, 10).full().waits(Pod("p", 4000, ByReplicaSet(set("w")))).uncreated(3, "w")),
	Entry("have none released if others own the machines", "a+1(a-2)", "Released:1", 0,
		tell().pool("a", 1, 2, 10, dedicated("shop", 1)).full().waits(Pod("p", 4000, ByReplicaSet(set("w")))).uncreated(1, "w")),
	Entry("count beside pods that own machines", "a+3(a-1 a-2 a-3)", "Released:2", 1,
		tell().pool("a", 1, 4, 10, dedicated("shop", 1)).full().waits(Pod("p", 4000, ofWeb), Pod("q", 4000, ByReplicaSet(set("w")))).uncreated(1, "w")),
	Entry("have none of the machines released that are for all, if they will own others", "a+1(a-1)", "Released:1", 0,
		tell().pool("a", 1, 4, 10, dedicated("shop", 2)).full().waits(Pod("p", 4000, ofWeb)).uncreatedIn("shop", 1, "shopweb")),
	Entry("count as one of its namespace that waits, and not as one of another that names it as its owner", "a+3(a-1 a-2 a-3)", "Released:2", 4,
		tell().pool("a", 1, 9, 20).full().waits(Pod("other", 4000, InNamespace("other"), ByReplicaSet(set("w"))), Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(4, "w")),
	Entry("count with one that waits, beside one whose suitable nodes are unknown", "a+2(a-1 a-2)", "Released:1 Unclear:1", 7,
		tell().pool("a", 1, 5, 10).full().waits(Pod("p-0", 1000, ByReplicaSet(set("w")), claimsDevice), Pod("p-1", 1000, ByReplicaSet(set("w")))).uncreated(7, "w")),
	Entry("do not count where each has a volume of its own", "a+1(a-1)", "Released:1", 0,
		tell().pool("a", 1, 5, 10).full().stored("p", own, ByReplicaSet(set("w"))).uncreated(7, "w")),
)

var _ = DescribeTable("Where a machine has room for four pods, pods that a ReplicaSet has yet to create",
	func(wantOutcomes string, wantUncreated int, waiting ...*corev1.Pod) {
		web := Pod("web", 1000, ByReplicaSet(set("w")))
		s := tell().pool("a", 1, 1, 10).full().waits(append(waiting, web)...).uncreated(9, "w")
		p := New(s.View)
		Expect(Raises(p)).To(Equal("a+1(a-1)"))
		Expect(outcomes(p)).To(Equal(wantOutcomes))
		Expect(p.Raises[0].Uncreated).To(Equal(wantUncreated))
	},
	Entry("take what is left", "Released:2", 2, Pod("p", 1000)),
	Entry("leave it to pods that wait, of the same size", "Released:4", 0, Pod("p", 1000), Pod("q", 1000), Pod("r", 1000)),
	Entry("leave it to pods that wait, of another size", "Released:4", 0, Pod("p", 1000), Pod("q", 400), Pod("r", 1600)),
	Entry("leave it to pods that wait, all of them smaller", "Released:4", 0, Pod("p", 900), Pod("q", 900), Pod("r", 900)),
	Entry("leave it to pods that wait, all of them larger", "Released:3", 0, Pod("p", 1500), Pod("q", 1500)),
	Entry("leave it to pods that wait and are more important", "NoReserve:1 Released:2", 0,
		Pod("p", 2000, worth(5)), Pod("q", 2000, worth(5))),
	Entry("leave nothing to pods that are less important", "NoReserve:1 Released:1", 3, Pod("p", 1000, worth(-5))),
)

var _ = DescribeTable("A ReplicaSet is to have",
	func(want int, change func(*appsv1.ReplicaSet)) {
		rs := set("w")
		rs.Spec.Replicas = ptr.To[int32](7)
		change(rs)
		Expect(PodsOfReplicaSet(rs, "w")).To(Equal(want))
	},
	Entry("as many pods as its replicas", 7, func(*appsv1.ReplicaSet) {}),
	Entry("none if it was replaced", 0, func(s *appsv1.ReplicaSet) { s.UID = "other" }),
	Entry("none if it is being deleted", 0, func(s *appsv1.ReplicaSet) { s.DeletionTimestamp = &metav1.Time{Time: Noon} }),
	Entry("none if its replicas are not set", 0, func(s *appsv1.ReplicaSet) { s.Spec.Replicas = nil }),
	Entry("none if it cannot create them", 0, func(s *appsv1.ReplicaSet) {
		s.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}}
	}),
	Entry("all if it can create them again", 7, func(s *appsv1.ReplicaSet) {
		s.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionFalse}}
	}),
	Entry("all, whatever the status of another condition", 7, func(s *appsv1.ReplicaSet) {
		s.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: "Other", Status: corev1.ConditionTrue}}
	}),
)

var _ = It("A ReplicaSet that does not exist is to have no pods", func() {
	Expect(PodsOfReplicaSet(nil, "w")).To(BeZero())
})

var _ = DescribeTable("Pods like this one are created by",
	func(want string, pod *corev1.Pod) {
		owner := CreatorOf(pod)
		if want == "" {
			Expect(owner).To(BeNil())
			return
		}
		Expect(owner).To(HaveField("Kind", want))
	},
	Entry("its ReplicaSet", "ReplicaSet", Pod("p", 1000, ByReplicaSet(set("w")))),
	Entry("its Job", "Job", Pod("p", 1000, ownedBy("batch/v1", "Job"))),
	Entry("no controller, if the pod has no owner", "", Pod("p", 1000)),
	Entry("no controller of identical pods, if the owner is a StatefulSet", "", Pod("p", 1000, ownedBy("apps/v1", "StatefulSet"))),
	Entry("no known controller, if the owner is a Job of another API group", "", Pod("p", 1000, ownedBy("batch.example/v1", "Job"))),
)

// ownedBy has a controller of a kind own a pod.
func ownedBy(version, kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "w", UID: "w", Controller: ptr.To(true)}}
	}
}
