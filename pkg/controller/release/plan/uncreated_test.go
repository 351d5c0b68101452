// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/internal/fixture"
	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	. "github.com/evenkeel/evenkeel/pkg/controller/release/plan/plantest"
	"github.com/evenkeel/evenkeel/pkg/fit"
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

// uncreated says how many pods ReplicaSets have yet to make.
func (s *story) uncreated(n int, sets ...string) *story {
	s.Uncreated = map[types.UID]int{}
	for _, name := range sets {
		s.Uncreated[types.UID(name)] = n
	}
	return s
}

var _ = DescribeTable("Pods that a ReplicaSet has yet to make",
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
	Entry("have a machine released that those who wait do not need", "a+1(a-1)", "HasRoom:1", 1,
		tell().pool("a", 1, 5, 10).waits(Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(4, "w")),
	Entry("have none released beyond max", "a+1(a-1)", "Released:1", 3,
		tell().pool("a", 1, 5, 2).full().waits(Pod("p", 1000, ByReplicaSet(set("w")))).uncreated(20, "w")),
	Entry("do not count while the scheduler has not refused one", "", "", 0,
		tell().pool("a", 1, 5, 10).full().waits(Pod("p", 1000, Untried, ByReplicaSet(set("w")))).uncreated(7, "w")),
	Entry("do not count for others who wait", "a+1(a-1)", "Released:1", 0,
		tell().pool("a", 1, 5, 10).full().waits(Pod("p", 1000)).uncreated(7, "w")),
	Entry("count where they share a volume", "a+2(a-1 a-2)", "Released:1", 7,
		tell().pool("a", 1, 5, 10).full().stored("p", shared, ByReplicaSet(set("w"))).uncreated(7, "w")),
	Entry("do not count where each has a volume of its own", "a+1(a-1)", "Released:1", 0,
		tell().pool("a", 1, 5, 10).full().stored("p", own, ByReplicaSet(set("w"))).uncreated(7, "w")),
)
