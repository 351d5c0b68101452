// SPDX-License-Identifier: Apache-2.0

package drain_test

import (
	"context"
	"slices"
	"testing"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	stock "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/drain"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	ours "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

func TestDrain(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Drain")
}

// cluster is a server with MachineDeployments, and what looks after them.
type cluster struct {
	*sim.Server
	ours  ours.Interface
	stock stock.Interface
	drain *drain.Drain
}

func newCluster() cluster {
	GinkgoHelper()
	server := sim.New(sim.Options{Seed: 1, ManagedFields: true, Resources: slices.Concat(sim.Core, sim.Machine)})
	DeferCleanup(server.Close)
	config := server.ConfigFor("user")
	d, err := drain.New(config, fixture.Namespace, "test")
	Expect(err).NotTo(HaveOccurred())
	return cluster{server, ours.NewForConfigOrDie(config), stock.NewForConfigOrDie(config), d}
}

// pool has so many machines, of which some are in reserve.
func (c cluster) pool(ctx context.Context, name string, machines, reserve int, change ...func(*api.MachineDeployment)) {
	GinkgoHelper()
	plain := fixture.MachineDeployment(name, int32(machines-reserve))
	d := &api.MachineDeployment{ObjectMeta: plain.ObjectMeta, Spec: api.MachineDeploymentSpec{StockMachineDeploymentSpec: plain.Spec}}
	d.Annotations = map[string]string{api.BoundsAnnotation: "0:9:2"}
	if reserve > 0 {
		d.Annotations[api.AppliedExcessAnnotation] = "1"
	}
	for _, c := range change {
		c(d)
	}
	status := d.Status
	d, err := c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	d.Status = status
	_, err = c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace, OwnerReferences: ownedBy("MachineDeployment", name, d.UID)}, Spec: mcm.MachineSetSpec{Template: plain.Spec.Template}}
	set, err = c.stock.MachineV1alpha1().MachineSets(fixture.Namespace).Create(ctx, set, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for i := range machines {
		m := fixture.Machine(name+string(rune('a'+i)), func(m *mcm.Machine) {
			m.OwnerReferences = ownedBy("MachineSet", name, set.UID)
			if i < reserve {
				m.Annotations = map[string]string{api.ReserveAnnotation: "{}"}
			}
		})
		_, err := c.stock.MachineV1alpha1().Machines(fixture.Namespace).Create(ctx, m, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

func ownedBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: mcm.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}

func (c cluster) annotations(ctx context.Context, name string) map[string]string {
	GinkgoHelper()
	d, err := c.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return d.Annotations
}

func told(d *api.MachineDeployment) { d.Annotations[api.DrainReserveAnnotation] = "true" }

var _ = Describe("Draining", func() {
	It("writes one annotation where it is missing, and takes it away again", func(ctx context.Context) {
		c := newCluster()
		c.pool(ctx, "a", 3, 1)
		c.pool(ctx, "b", 2, 0, told)
		p, err := c.drain.Progress(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Machines()).To(Equal(1))
		Expect(p.Drained()).To(ConsistOf(HaveField("Name", "b")))

		before := len(c.Writes())
		Expect(c.drain.Annotate(ctx, p, true)).To(Succeed())
		Expect(c.Writes()).To(HaveLen(before+1), "b is told already")
		Expect(c.annotations(ctx, "a")).To(Equal(map[string]string{api.BoundsAnnotation: "0:9:2", api.AppliedExcessAnnotation: "1", api.DrainReserveAnnotation: "true"}))
		Expect(p.Drained()).To(HaveLen(2))

		p, err = c.drain.Progress(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.drain.Annotate(ctx, p, true)).To(Succeed())
		Expect(c.Writes()).To(HaveLen(before+1), "again is no harm")
		Expect(c.drain.Annotate(ctx, p, false)).To(Succeed())
		for _, name := range []string{"a", "b"} {
			Expect(c.annotations(ctx, name)).NotTo(HaveKey(api.DrainReserveAnnotation))
			Expect(c.annotations(ctx, name)).To(HaveKeyWithValue(api.BoundsAnnotation, "0:9:2"), "what is wished for stays")
		}
	})

	It("is requested in all namespaces, also of equal names, and under the name of who does it", func(ctx context.Context) {
		c := newCluster()
		everywhere, err := drain.New(c.ConfigFor("user"), metav1.NamespaceAll, "test")
		Expect(err).NotTo(HaveOccurred())
		namespaces := []string{"a", "b"}
		for _, namespace := range namespaces {
			world.Create(c.ours.MachineV1alpha1().MachineDeployments(namespace), &api.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool"}})
		}
		p, err := everywhere.Progress(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(everywhere.Annotate(ctx, p, true)).To(Succeed())
		for _, namespace := range namespaces {
			d, err := c.ours.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Annotations).To(HaveKey(api.DrainReserveAnnotation))
			Expect(d.ManagedFields).To(ContainElement(HaveField("Manager", "test")))
		}
	})

	It("goes on where one has just been deleted", func(ctx context.Context) {
		c := newCluster()
		c.pool(ctx, "b", 1, 0)
		Expect(c.drain.Annotate(ctx, drain.Progress{{Namespace: fixture.Namespace, Name: "a"}, {Namespace: fixture.Namespace, Name: "b"}}, true)).To(Succeed())
		Expect(c.annotations(ctx, "b")).To(HaveKey(api.DrainReserveAnnotation))
	})

	DescribeTable("is done when",
		func(ctx context.Context, machines, reserve int, done bool, change ...func(*api.MachineDeployment)) {
			c := newCluster()
			c.pool(ctx, "a", machines, reserve, append([]func(*api.MachineDeployment){told}, change...)...)
			p, err := c.drain.Progress(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.Done(false)).To(Equal(done), p.Pending(false))
		},
		Entry("nothing is applied and none is marked", 3, 0, true),
		Entry("not while one is marked, though it leaves", 3, 1, false, func(d *api.MachineDeployment) { delete(d.Annotations, api.AppliedExcessAnnotation) }),
		Entry("not while one is marked, though there are no more machines than replicas", 3, 1, false, func(d *api.MachineDeployment) {
			delete(d.Annotations, api.AppliedExcessAnnotation)
			d.Spec.Replicas = 3
		}),
		Entry("not while something is applied", 3, 0, false, func(d *api.MachineDeployment) { d.Annotations[api.AppliedExcessAnnotation] = "1,max=9" }),
		Entry("not while there are more machines than replicas", 3, 0, false, func(d *api.MachineDeployment) { d.Spec.Replicas = 2 }),
		Entry("not where nobody was told", 3, 0, false, func(d *api.MachineDeployment) { delete(d.Annotations, api.DrainReserveAnnotation) }),
	)

	DescribeTable("is undone without a condition only where nothing requests a reserve",
		func(ctx context.Context, bounds string, done bool) {
			c := newCluster()
			c.pool(ctx, "a", 3, 0, func(d *api.MachineDeployment) { d.Annotations[api.BoundsAnnotation] = bounds })
			p, err := c.drain.Progress(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(p.Done(true)).To(Equal(done), p.Pending(true))
		},
		Entry("a count", "0:9:2", false),
		Entry("a count without room", "0:3:2", false),
		Entry("a percentage", "0:9:10%", false),
		Entry("an amount", "0:9:cpu=16", false),
		Entry("what cannot be read", "many", false),
		Entry("none", "0:9:0", true),
		Entry("a percentage of none", "0:9:0%", true),
		Entry("no excess", "0:9", true),
	)

	It("is undone when no MachineDeployment is to drain and the condition is True", func(ctx context.Context) {
		c := newCluster()
		condition := func(status mcm.ConditionStatus) func(*api.MachineDeployment) {
			return func(d *api.MachineDeployment) {
				d.Status.Conditions = []mcm.MachineDeploymentCondition{{Type: api.ReserveReady, Status: status, Reason: "Growing", Message: "1 of 2"}}
			}
		}
		c.pool(ctx, "a", 3, 1, condition(mcm.ConditionTrue))
		c.pool(ctx, "b", 3, 1, condition(mcm.ConditionFalse))
		p, err := c.drain.Progress(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Done(true)).To(BeFalse())
		Expect(p.Pending(true)).To(Equal("default/b: applied excess 1, machines in reserve 1, machines in total 3, replicas 2 (Growing: 1 of 2)"))
		Expect(p[:1].Done(true)).To(BeTrue())
	})

	It("explains how to handle a MachineDeployment that was created, or lost its annotation, after the command ran", func() {
		later := drain.Progress{{Namespace: "n", Name: "a", There: 2, Replicas: 2}}
		Expect(later.Pending(false)).To(And(HavePrefix("n/a: applied excess 0, "), HaveSuffix(": run the command again")))
		Expect(later.Changes(nil, false)).To(ConsistOf(later.Pending(false)))
		Expect(later.Pending(true)).NotTo(ContainSubstring("again"))
		later[0].Told = true
		Expect(later.Pending(true)).To(HaveSuffix(": run the command again"))
	})

	It("says each thing once", func() {
		before := drain.Progress{{Namespace: "n", Name: "a", Told: true, Applied: 1, Marked: 1, There: 3, Replicas: 2}, {Namespace: "n", Name: "b", Told: true}}
		Expect(before.Changes(nil, false)).To(Equal([]string{"n/a: applied excess 1, machines in reserve 1, machines in total 3, replicas 2", "n/b: done"}))
		Expect(before.Changes(before, false)).To(BeEmpty())
		now := slices.Clone(before)
		now[0] = drain.Pool{Namespace: "n", Name: "a", Told: true, There: 2, Replicas: 2}
		Expect(now.Changes(before, false)).To(Equal([]string{"n/a: done"}))
	})
})
