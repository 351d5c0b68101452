// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/similar"
	"github.com/evenkeel/evenkeel/test/fixture"
)

type podChange = func(*corev1.Pod)

// web is a pod of a ReplicaSet in the namespace default, a day old, with one container and no volume.
func web(changes ...podChange) *corev1.Pod {
	return fixture.Pod("web", append([]podChange{owned("ReplicaSet"), age(24 * time.Hour), func(p *corev1.Pod) {
		p.Namespace, p.Labels = metav1.NamespaceDefault, map[string]string{"app": "web"}
	}}, changes...)...)
}

func owned(kind string) podChange {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "owner", Controller: ptr.To(true)}}
	}
}

func ownedByNone(p *corev1.Pod) { p.OwnerReferences = nil }

func age(d time.Duration) podChange {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-d)) }
}

func system(p *corev1.Pod) { p.Namespace = metav1.NamespaceSystem }

func noted(key, value string) podChange {
	return func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value) }
}

func safe(value string) podChange { return noted(pool.SafeToEvict, value) }

func volume(name string, source corev1.VolumeSource) podChange {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	}
}

func emptyDir(name string) podChange {
	return volume(name, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
}

func safeVolumes(names string) podChange { return noted(pool.SafeToEvictLocalVolumes, names) }

// terminating is a pod whose deletion was asked for that long ago, with a minute to end.
func terminating(since time.Duration) podChange {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp, p.Spec.TerminationGracePeriodSeconds = ptr.To(metav1.NewTime(noon.Add(-since))), ptr.To[int64](60)
	}
}

func in(phase corev1.PodPhase) podChange { return func(p *corev1.Pod) { p.Status.Phase = phase } }

// budget is of the pods web in a namespace.
func budget(name, namespace string, allowed int) pool.Budget {
	return pool.Budget{Namespace: namespace, Name: name, Selector: labels.SelectorFromSet(labels.Set{"app": "web"}), Allowed: allowed}
}

func webBudget(allowed int) []pool.Budget { return []pool.Budget{budget("b", "default", allowed)} }

// The rows are judged as cluster-autoscaler 1.36.1 judges them with its default flags: by its page "What types of pods can prevent CA from
// removing a node?", and where that is silent, by its packages simulator/drainability/rules and utils/drain.
var _ = DescribeTable("A pod is judged as cluster-autoscaler judges it", func(why string, pod *corev1.Pod, budgets ...[]pool.Budget) {
	Expect(pool.NewEvictor(pool.EvictionRule{}, slices.Concat(budgets...), "", noon).WhyNot(pod)).To(Equal(why))
},
	// Controllers.
	Entry("one of a ReplicaSet may go", "", web()),
	Entry("one of a StatefulSet may go", "", web(owned("StatefulSet"))),
	Entry("one of a Job may go", "", web(owned("Job"))),
	Entry("one of a ReplicationController may go", "", web(owned("ReplicationController"))),
	Entry("one of none stays", "NotReplicated: pod default/web has no controller and would not be recreated", web(ownedByNone)),
	Entry("one of an owner that is no controller stays", "NotReplicated: pod default/web has no controller and would not be recreated",
		web(func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil })),
	Entry("one of a controller of another kind stays", "NotReplicated: pod default/web belongs to a Workflow, which may not recreate it", web(owned("Workflow"))),

	// The annotation safe-to-evict.
	Entry("one that is not safe to evict stays", "NotSafeToEvict: pod default/web must not be evicted", web(safe("false"))),
	Entry("one that is safe to evict on completion stays until then", "NotSafeToEvict: pod default/web must not be evicted before it has finished", web(safe("on-completion"))),
	Entry("one with another value is judged without it", "", web(safe("no"))),
	Entry("one of none with another value stays", "NotReplicated: pod default/web has no controller and would not be recreated", web(ownedByNone, safe("True"))),
	Entry("one of none that is safe to evict may go", "", web(ownedByNone, safe("true"))),
	Entry("one of another kind that is safe to evict may go", "", web(owned("Workflow"), safe("true"))),
	Entry("one on local storage that is safe to evict may go", "", web(emptyDir("data"), safe("true"))),
	Entry("one of kube-system that is safe to evict may go", "", web(system, age(time.Minute), safe("true"))),

	// kube-system.
	Entry("one of kube-system without a budget stays", "SystemPod: pod kube-system/web has no PodDisruptionBudget, and is younger than 1 hour", web(system, age(time.Minute))),
	Entry("one of kube-system without a budget stays for an hour", "SystemPod: pod kube-system/web has no PodDisruptionBudget, and is younger than 1 hour", web(system, age(time.Hour))),
	Entry("one of kube-system without a budget may go after an hour", "", web(system, age(time.Hour+time.Second))),
	Entry("one of kube-system with a budget may go", "", web(system, age(time.Minute)), []pool.Budget{budget("b", "kube-system", 1)}),
	Entry("one of kube-system whose budget is spent stays", "PodDisruptionBudget: kube-system/b allows no eviction of pod kube-system/web", web(system, age(2*time.Hour)), []pool.Budget{budget("b", "kube-system", 0)}),
	Entry("one of kube-system is not covered by a budget elsewhere", "SystemPod: pod kube-system/web has no PodDisruptionBudget, and is younger than 1 hour", web(system, age(time.Minute)), webBudget(1)),
	Entry("one of another namespace needs no budget", "", web(age(time.Minute))),

	// Local storage.
	Entry("one with an emptyDir stays", "LocalStorage: pod default/web has local storage in its volume data", web(emptyDir("data"))),
	Entry("one with a hostPath stays", "LocalStorage: pod default/web has local storage in its volume logs", web(volume("logs", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}}))),
	Entry("one with an emptyDir in memory may go", "", web(volume("tmp", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}))),
	Entry("one with an emptyDir in huge pages stays", "LocalStorage: pod default/web has local storage in its volume tmp",
		web(volume("tmp", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumHugePages}}))),
	Entry("one with a claim may go", "", web(volume("disk", corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"}}))),
	Entry("one with a ConfigMap and a projected volume may go", "", web(volume("c", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}), volume("p", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}))),
	Entry("one whose local volumes are all safe may go", "", web(emptyDir("a"), emptyDir("b"), safeVolumes("b,a"))),
	Entry("one with a local volume that is not safe stays", "LocalStorage: pod default/web has local storage in its volume b", web(emptyDir("a"), emptyDir("b"), safeVolumes("a"))),
	Entry("names of safe volumes are not trimmed", "LocalStorage: pod default/web has local storage in its volume b", web(emptyDir("a"), emptyDir("b"), safeVolumes("a, b"))),

	// Budgets.
	Entry("one whose budget allows an eviction may go", "", web(), webBudget(1)),
	Entry("one whose budget allows none stays", "PodDisruptionBudget: default/b allows no eviction of pod default/web", web(), webBudget(0)),
	Entry("budgets of other namespaces do not count", "", web(), []pool.Budget{budget("b", "other", 0)}),
	Entry("budgets of other pods do not count", "", web(func(p *corev1.Pod) { p.Labels["app"] = "db" }), webBudget(0)),

	// Pods that a drain leaves alone.
	Entry("one of a DaemonSet does not count", "", web(owned("DaemonSet"), emptyDir("data"), system, age(time.Minute))),
	Entry("one that counts as a DaemonSet's does not count", "", web(ownedByNone, emptyDir("data"), noted(similar.DaemonSetPod, "true"), safe("false"))),
	Entry("a mirror pod does not count", "", web(owned("Node"), noted(corev1.MirrorPodAnnotationKey, "x"), system, age(time.Minute))),
	Entry("one that succeeded does not count", "", web(ownedByNone, in(corev1.PodSucceeded)), webBudget(0)),
	Entry("one that failed does not count", "", web(safe("false"), in(corev1.PodFailed))),
	Entry("one that ends counts for its grace period and 30 seconds", "LocalStorage: pod default/web has local storage in its volume data", web(emptyDir("data"), terminating(90*time.Second))),
	Entry("one that should have ended does not count", "", web(emptyDir("data"), terminating(91*time.Second)), webBudget(0)),
	Entry("one that ends counts for half a minute without a grace period", "NotReplicated: pod default/web has no controller and would not be recreated",
		web(ownedByNone, terminating(60*time.Second), func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = nil })),
	Entry("one that should have ended does not count without a grace period", "",
		web(ownedByNone, terminating(61*time.Second), func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = nil })),
)

// machine-controller-manager cannot give up a drain: it evicts by force in the end.
var _ = DescribeTable("Pods stay that cluster-autoscaler begins to drain, though it would be refused or gives up", func(why string, budgets []pool.Budget, pods ...*corev1.Pod) {
	Expect(pool.NewEvictor(pool.EvictionRule{}, budgets, "", noon).WhyNot(pods...)).To(Equal(why))
},
	Entry("of one budget that does not allow all of them", "PodDisruptionBudget: default/b allows no eviction of pod default/web", webBudget(1), web(), web()),
	Entry("of two budgets", "PodDisruptionBudget: pod default/web has two of them, b and c, and Kubernetes does not evict such a pod: remove one", []pool.Budget{budget("b", "default", 1), budget("c", "default", 1)}, web()),
	Entry("that are safe to evict, if their budget allows none", "PodDisruptionBudget: default/b allows no eviction of pod default/web", webBudget(0), web(safe("true"))),
	Entry("that count as a DaemonSet's, if their budget allows none", "PodDisruptionBudget: default/b allows no eviction of pod default/web", webBudget(0), web(noted(similar.DaemonSetPod, "true"))),
	Entry("of kube-system on local storage, after an hour, too", "LocalStorage: pod kube-system/web has local storage in its volume tmp", nil, web(system, emptyDir("tmp"))),
	Entry("of kube-system that are not safe to evict, after an hour, too", "NotSafeToEvict: pod kube-system/web must not be evicted", nil, web(system, safe("false"))),
)

var _ = Describe("An evictor", func() {
	It("lets pods of kube-system and on local storage go, if the rule says so, each", func() {
		pods := []*corev1.Pod{web(system, age(time.Minute)), web(emptyDir("data"))}
		why := func(rule pool.EvictionRule) string { return pool.NewEvictor(rule, nil, "", noon).WhyNot(pods...) }
		Expect(why(pool.EvictionRule{})).To(HavePrefix("SystemPod"))
		Expect(why(pool.EvictionRule{SystemPods: true})).To(HavePrefix("LocalStorage"))
		Expect(why(pool.EvictionRule{LocalStorage: true})).To(HavePrefix("SystemPod"))
		Expect(why(pool.EvictionRule{SystemPods: true, LocalStorage: true})).To(BeEmpty())
	})

	It("counts all pods of a machine against each budget", func() {
		all := func(allowed int) string {
			return pool.NewEvictor(pool.EvictionRule{}, webBudget(allowed), "", noon).WhyNot(web(), web(), web())
		}
		Expect(all(3)).To(BeEmpty())
		Expect(all(2)).To(HavePrefix("PodDisruptionBudget"))
	})

	It("counts pods of each namespace against its own budget, also if budgets have the same name", func() {
		e := pool.NewEvictor(pool.EvictionRule{}, []pool.Budget{budget("b", "default", 1), budget("b", "other", 1)}, "", noon)
		Expect(e.WhyNot(web(), web(func(p *corev1.Pod) { p.Namespace = "other" }))).To(BeEmpty())
	})

	It("takes evictions that are expected from budgets, once, and no pod that a drain leaves alone or that ends", func() {
		e := pool.NewEvictor(pool.EvictionRule{}, webBudget(2), "", noon)
		gone := web(func(p *corev1.Pod) { p.Name = "gone" })
		e.Expect(gone, web(owned("DaemonSet")), web(terminating(time.Second), func(p *corev1.Pod) { p.Name = "ends" }))
		Expect(e.WhyNot(web())).To(BeEmpty())
		Expect(e.WhyNot(web(), web(func(p *corev1.Pod) { p.Name = "more" }))).To(HavePrefix("PodDisruptionBudget"))
		Expect(e.WhyNot(web(), gone)).To(BeEmpty(), "it is taken already")
		e.Expect(web(func(p *corev1.Pod) { p.Name = "next" }), web(func(p *corev1.Pod) { p.Name = "last" }))
		Expect(e.WhyNot(gone)).To(HavePrefix("PodDisruptionBudget"), "too many are expected")
	})

	It("lets no pod go while budgets are not known, but says nothing of machines without pods", func() {
		e := pool.NewEvictor(pool.EvictionRule{SystemPods: true}, nil, "they have not been read yet", noon)
		Expect(e.WhyNot(web(safe("true")))).To(Equal("PodDisruptionBudget: they have not been read yet"))
		Expect(e.WhyNot(web(owned("DaemonSet")))).To(BeEmpty())
		Expect(e.WhyNot()).To(BeEmpty())
	})

	It("does not look for the budget of a pod whose labels are too large to be kept", func() {
		large := web(noted("fit/unread", "has more than 8192 bytes"))
		large.Labels = nil
		Expect(pool.NewEvictor(pool.EvictionRule{}, webBudget(1), "", noon).WhyNot(large)).To(Equal("PodDisruptionBudget: pod default/web is too large to find its budget"))
		Expect(pool.NewEvictor(pool.EvictionRule{}, []pool.Budget{budget("b", "other", 0)}, "", noon).WhyNot(large)).To(BeEmpty())
	})

	It("considers a thousand budgets of a namespace, and lets no pod of it go if there are more", func() {
		var many []pool.Budget
		for i := range 1001 {
			many = append(many, pool.Budget{Namespace: "default", Name: fmt.Sprint(i), Selector: labels.Nothing()})
		}
		Expect(pool.NewEvictor(pool.EvictionRule{}, many[:1000], "", noon).WhyNot(web())).To(BeEmpty())
		Expect(pool.NewEvictor(pool.EvictionRule{}, many, "", noon).WhyNot(web())).To(Equal("PodDisruptionBudget: namespace default has more than 1000, too many to check"))
	})

	It("finds the budgets that machines share, with what each takes of them", func() {
		e := pool.NewEvictor(pool.EvictionRule{}, []pool.Budget{budget("b", "default", 3), budget("b", "other", 1)}, "", noon)
		other := web(func(p *corev1.Pod) { p.Namespace = "other" })
		Expect(e.Shared(map[string][]*corev1.Pod{
			"m": {web(), web(), other, web(terminating(time.Hour))}, "n": {web(), web(owned("DaemonSet"))}, "o": nil,
		})).To(Equal([]pool.SharedBudget{{Allowed: 3, Pods: map[string]int{"m": 2, "n": 1}}}))
	})
})

var _ = It("Budgets are read in order, and those without a selector select no pod", func() {
	b := func(namespace, name string, selector *metav1.LabelSelector, allowed int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
		}
	}
	invalid := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	all := pool.BudgetsOf([]*policyv1.PodDisruptionBudget{b("y", "a", &metav1.LabelSelector{}, 2), b("x", "b", nil, 3), b("x", "a", invalid, 4)})
	Expect(all).To(HaveExactElements(
		And(HaveField("Namespace", "x"), HaveField("Name", "b"), HaveField("Allowed", 3)),
		And(HaveField("Namespace", "y"), HaveField("Name", "a"), HaveField("Allowed", 2))))
	Expect(all[0].Selector.Matches(labels.Set{"a": "b"})).To(BeFalse())
	Expect(all[1].Selector.Matches(labels.Set{"a": "b"})).To(BeTrue())
})
