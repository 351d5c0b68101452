// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/fit"
)

// cluster has claims, volumes, classes and drivers by name.
type cluster struct {
	claims  map[string]*corev1.PersistentVolumeClaim
	volumes map[string]*corev1.PersistentVolume
	classes map[string]*storagev1.StorageClass
	drivers map[string]*storagev1.CSIDriver
}

func (c cluster) lookups() *Lookups {
	return &Lookups{
		Claim:  func(namespace, name string) *corev1.PersistentVolumeClaim { return c.claims[namespace+"/"+name] },
		Volume: func(name string) *corev1.PersistentVolume { return c.volumes[name] },
		Class:  func(name string) *storagev1.StorageClass { return c.classes[name] },
		Driver: func(name string) *storagev1.CSIDriver { return c.drivers[name] },
	}
}

// storage has a claim default/data, bound to a volume disk in zone a, and classes.
func storage(change ...func(cluster)) cluster {
	c := cluster{
		claims: map[string]*corev1.PersistentVolumeClaim{"default/data": {
			Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: "disk", StorageClassName: ptr.To("late")},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		}},
		volumes: map[string]*corev1.PersistentVolume{"disk": {
			ObjectMeta: metav1.ObjectMeta{Name: "disk", Labels: map[string]string{}},
			Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: zone, Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
				}}},
			}}},
		}},
		classes: map[string]*storagev1.StorageClass{
			"late":  {ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "csi.example", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)},
			"early": {ObjectMeta: metav1.ObjectMeta{Name: "early"}, Provisioner: "csi.example", VolumeBindingMode: ptr.To(storagev1.VolumeBindingImmediate)},
		},
		drivers: map[string]*storagev1.CSIDriver{},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func claim(change func(*corev1.PersistentVolumeClaim)) func(cluster) {
	return func(c cluster) { change(c.claims["default/data"]) }
}

func volume(change func(*corev1.PersistentVolume)) func(cluster) {
	return func(c cluster) { change(c.volumes["disk"]) }
}

func class(change func(*storagev1.StorageClass)) func(cluster) {
	return func(c cluster) { change(c.classes["late"]) }
}

var unbound = claim(func(c *corev1.PersistentVolumeClaim) {
	c.Spec.VolumeName, c.Status.Phase = "", corev1.ClaimPending
})

// tied returns a change of the volume: labels instead of a node affinity, as old volumes have them.
func tied(labels map[string]string) func(cluster) {
	return volume(func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity, v.Labels = nil, labels })
}

var _ = DescribeTable("A pod with a claim runs in",
	func(want string, c cluster) {
		p := NewPod(pod("db", "cpu=1", claiming("data")), c.lookups())
		got := ""
		for _, name := range []string{"a", "b"} {
			n := node(name, in(name))
			switch o := On(p, n); o {
			case Fits:
				got += name
			default:
				Expect(o).To(BeElementOf(VolumeElsewhere, Undecided))
			}
			Expect(NewRoom(open(n)).Ask(p, name)).To(Equal(On(p, n)))
		}
		if p.Unclear != "" {
			got = p.Unclear
		}
		Expect(got).To(Equal(want))
	},
	Entry("the zone of its volume", "a", storage()),
	Entry("the zone of its volume, noted by the binder alone", "a", storage(claim(func(c *corev1.PersistentVolumeClaim) {
		c.Status.Phase, c.Annotations = corev1.ClaimPending, map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}))),
	Entry("any zone, for a volume that is everywhere", "ab", storage(volume(func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity = nil }))),
	Entry("the zone of the volume's label", "b", storage(tied(map[string]string{zone: "b"}))),
	Entry("the zone of the volume's old label", "b", storage(tied(map[string]string{corev1.LabelFailureDomainBetaZone: "b"}))),
	Entry("both zones of a volume in several", "ab", storage(tied(map[string]string{zone: "a__b"}))),
	Entry("no zone of the wrong region", "", storage(tied(map[string]string{corev1.LabelTopologyRegion: "r"}))),
	Entry("any zone, for a volume that is made where the pod goes", "ab", storage(unbound)),
	Entry("the zones where it may be made", "b", storage(unbound, class(func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zone, Values: []string{"b", "c"}}}}}
	}))),
	Entry("who knows: no claim", "its claim data does not exist", storage(func(c cluster) { delete(c.claims, "default/data") })),
	Entry("who knows: it goes", "its claim data is being deleted", storage(claim(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(metav1.Now()) }))),
	Entry("who knows: one pod alone", "its claim data may be used by one pod alone", storage(claim(func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}))),
	Entry("who knows: half bound", "its claim data is being bound", storage(claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimPending }))),
	Entry("who knows: no volume", "its claim data is bound to disk, which does not exist", storage(func(c cluster) { delete(c.volumes, "disk") })),
	Entry("who knows: malformed volume", "its claim data is bound to disk, whose node affinity is malformed", storage(volume(func(v *corev1.PersistentVolume) {
		v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"
	}))),
	Entry("who knows: no class named", "its claim data is not bound and has no storage class", storage(unbound, claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }))),
	Entry("who knows: the class of no name", "its claim data is not bound and has no storage class", storage(unbound, claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr.To("") }))),
	Entry("who knows: a class that does not say when it binds", "its claim data is not bound", storage(unbound, class(func(c *storagev1.StorageClass) { c.VolumeBindingMode = nil }))),
	Entry("any zone, for a volume whose affinity requires nothing", "ab", storage(volume(func(v *corev1.PersistentVolume) { v.Spec.NodeAffinity.Required = nil }))),
	Entry("any zone, where the driver has room without end", "ab", storage(unbound, func(c cluster) {
		c.drivers["csi.example"] = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(false)}}
	})),
	Entry("who knows: no class", "its claim data is of a storage class that does not exist", storage(unbound, func(c cluster) { delete(c.classes, "late") })),
	Entry("who knows: bound at once", "its claim data is not bound", storage(unbound, claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = ptr.To("early") }))),
	Entry("who knows: static volumes", "its claim data needs one of the volumes that there are", storage(unbound, class(func(c *storagev1.StorageClass) { c.Provisioner = "kubernetes.io/no-provisioner" }))),
	Entry("the node for which its volume is being made", "b", storage(unbound, claim(func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "b"}
	}))),
	Entry("who knows: storage has an end", "its claim data needs room in storage", storage(unbound, func(c cluster) {
		c.drivers["csi.example"] = &storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{StorageCapacity: ptr.To(true)}}
	})),
	Entry("any zone, where the driver does not tell of capacity", "ab", storage(unbound, func(c cluster) {
		c.drivers["csi.example"] = &storagev1.CSIDriver{}
	})),
	Entry("who knows: malformed topologies", "its claim data is of a storage class whose topologies are malformed", storage(unbound, class(func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "a b", Values: []string{"b"}}}}}
	}))),
)

var _ = Describe("Other volumes", func() {
	with := func(source corev1.VolumeSource, c cluster) *Pod {
		return NewPod(pod("web", "cpu=1", func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }), c.lookups())
	}

	It("do not matter where every node has them", func() {
		for _, source := range []corev1.VolumeSource{
			{EmptyDir: &corev1.EmptyDirVolumeSource{}}, {ConfigMap: &corev1.ConfigMapVolumeSource{}}, {Secret: &corev1.SecretVolumeSource{}},
			{Projected: &corev1.ProjectedVolumeSource{}}, {DownwardAPI: &corev1.DownwardAPIVolumeSource{}},
			{HostPath: &corev1.HostPathVolumeSource{}}, {NFS: &corev1.NFSVolumeSource{}}, {Image: &corev1.ImageVolumeSource{}},
			{CSI: &corev1.CSIVolumeSource{Driver: "secrets-store.csi.k8s.io"}},
		} {
			Expect(On(with(source, cluster{}), node("n", in("a")))).To(Equal(Fits))
		}
	})

	It("leave a pod undecided where they are of a kind that the scheduler has rules of its own for", func() {
		p := with(corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}}, cluster{})
		Expect(p.Unclear).To(Equal("its volume v is of a kind that is not known here"))
		Expect(On(p, node("n"))).To(Equal(Undecided))
	})

	It("that are made for the pod have claims named after it", func() {
		c := storage(func(c cluster) { c.claims["default/web-v"] = c.claims["default/data"] })
		p := with(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}, c)
		Expect([]Obstacle{On(p, node("n", in("a"))), On(p, node("n", in("b")))}).To(Equal([]Obstacle{Fits, VolumeElsewhere}))
	})

	It("with a label of old are where nodes have that label, or the present one", func() {
		p := NewPod(pod("db", "", claiming("data")), storage(tied(map[string]string{corev1.LabelFailureDomainBetaZone: "b"})).lookups())
		old := func(value string) *corev1.Node { return node("n", labelled(corev1.LabelFailureDomainBetaZone, value)) }
		Expect([]Obstacle{On(p, old("b")), On(p, old("a")), On(p, node("n", in("b"))), On(p, node("n", in("a")))}).
			To(Equal([]Obstacle{Fits, VolumeElsewhere, Fits, VolumeElsewhere}))
	})

	It("in a zone whose name is empty are on no node that has a region and no zone", func() {
		p := NewPod(pod("db", "", claiming("data")), storage(tied(map[string]string{zone: ""})).lookups())
		Expect(On(p, node("n", in("")))).To(Equal(Fits))
		Expect(On(p, node("n", labelled(corev1.LabelTopologyRegion, "r")))).To(Equal(VolumeElsewhere))
	})

	It("are not read where there are no lookups, as of a pod that runs", func() {
		p := pod("db", "", claiming("data"))
		Expect(NewPod(p, nil).Unclear).To(BeEmpty())
	})

	It("have no zones where nodes have none", func() {
		c := storage(tied(map[string]string{zone: "b"}))
		c.claims["default/web-v"] = c.claims["default/data"]
		p := with(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}, c)
		Expect(On(p, node("n"))).To(Equal(Fits))
	})
})

var _ = It("The labels and annotations that are read are named", func() {
	Expect(VolumeLabels()).To(Equal([]string{
		corev1.LabelFailureDomainBetaRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelTopologyRegion, corev1.LabelTopologyZone,
	}))
	Expect(ClaimAnnotations()).To(ConsistOf("pv.kubernetes.io/bind-completed", "volume.kubernetes.io/selected-node"))
})

var _ = It("Pods of different volumes are not alike, and neither are those whose volumes are to be made of different classes", func() {
	shapes := map[string]bool{}
	for _, name := range []string{"disk", "other"} {
		c := storage(claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = name }))
		c.volumes["other"] = c.volumes["disk"]
		shapes[NewPod(pod("db", "cpu=1", claiming("data")), c.lookups()).Shape()] = true
	}
	topologies := class(func(c *storagev1.StorageClass) {
		c.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zone, Values: []string{"b"}}}}}
	})
	shapes[NewPod(pod("db", "cpu=1", claiming("data")), storage(unbound, topologies).lookups()).Shape()] = true
	renamed := storage(unbound, topologies, class(func(c *storagev1.StorageClass) { c.Name = "slow" }))
	shapes[NewPod(pod("db", "cpu=1", claiming("data")), renamed.lookups()).Shape()] = true
	Expect(shapes).To(HaveLen(4))
})

var _ = It("Pods that have only one of two volumes in common are not alike", func() {
	shapes := map[string]bool{}
	for _, name := range []string{"disk", "other"} {
		c := storage()
		c.volumes["other"] = c.volumes["disk"]
		second := c.claims["default/data"].DeepCopy()
		second.Spec.VolumeName = name
		c.claims["default/more"] = second
		p := pod("db", "cpu=1", claiming("data"))
		p.Spec.Volumes = append(p.Spec.Volumes, pod("db", "", claiming("more")).Spec.Volumes...)
		shapes[NewPod(p, c.lookups()).Shape()] = true
	}
	Expect(shapes).To(HaveLen(2))
})

// claiming has a pod use a claim.
func claiming(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}}}
	}
}

var _ = DescribeTable("What many pods claim is parsed once",
	func(c cluster) {
		p, remembering := pod("db", "cpu=1", claiming("data")), c.lookups().Remembering()
		once := NewPod(p, remembering)
		allocations := func(l *Lookups) float64 { return testing.AllocsPerRun(10, func() { NewPod(p, l) }) }
		Expect(allocations(remembering)).To(BeNumerically("<", allocations(c.lookups())/3))
		for _, again := range []*Pod{NewPod(p, remembering), NewPod(p, c.lookups())} {
			Expect(again.Shape()).To(Equal(once.Shape()))
			for _, name := range []string{"a", "b"} {
				Expect(On(again, node(name, in(name)))).To(Equal(On(once, node(name, in(name)))))
			}
		}
	},
	Entry("a volume", storage(volume(func(v *corev1.PersistentVolume) {
		required := v.Spec.NodeAffinity.Required
		required.NodeSelectorTerms = slices.Repeat(required.NodeSelectorTerms, 100)
	}))),
	Entry("a malformed volume", storage(volume(func(v *corev1.PersistentVolume) {
		term := &v.Spec.NodeAffinity.Required.NodeSelectorTerms[0]
		term.MatchExpressions = slices.Repeat([]corev1.NodeSelectorRequirement{{Key: zone, Operator: "Unheard"}}, 100)
	}))),
	Entry("a class", storage(unbound, class(func(s *storagev1.StorageClass) {
		s.AllowedTopologies = slices.Repeat([]corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: zone, Values: []string{"a"}}}}}, 100)
	}))),
)
