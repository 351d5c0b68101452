// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/test/audit"
	"github.com/evenkeel/evenkeel/test/localcluster"
)

// apart runs our processes with the Machines in one cluster and the Nodes in another, and has all helpers speak to these. The
// manager alone reaches the Nodes through the link that is returned.
func apart(ctx context.Context, name string, flags ...string) (seed, shoot *localcluster.Cluster, link *localcluster.Link) {
	GinkgoHelper()
	seed = another(ctx, localcluster.Options{Name: name + "-seed", Components: localcluster.APIServerOnly, Audit: true})
	shoot = another(ctx, localcluster.Options{Name: name + "-shoot", Audit: true})
	Expect(seed.Apply(ctx, "kubernetes/crds", "kubernetes/policies", managerAccess)).To(Succeed())
	Expect(shoot.Apply(ctx, "kubernetes/deploy/target-account/access.yaml", "kubernetes/deploy/target/access.yaml")).To(Succeed())
	link, err := localcluster.NewLink(shoot.Config().Host)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(link.Close)
	text, err := link.Kubeconfig(accountOf(ctx, shoot, mcm))
	Expect(err).NotTo(HaveOccurred())
	linked := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(linked, text, 0o600)).To(Succeed())
	runProgram(ctx, seed, localcluster.Program{Name: machineController, Flags: slices.Concat(rates, []string{"--target-kubeconfig=" + shoot.Kubeconfig()})})
	runProgram(ctx, seed, localcluster.Program{Name: mcm, Kubeconfig: accountOf(ctx, seed, mcm),
		Flags: slices.Concat(rates, []string{managerControllers, "--target-kubeconfig=" + linked, "--v=3"}, flags)})
	moveTo(seed, shoot)
	return seed, shoot, link
}

var _ = Describe("In the long run, while the target cluster does not answer, a reserve", Label("long", "ours"), Serial, func() {
	It("does not count a machine as empty because it was before, loses no pod, and is corrected when the cluster answers", func(ctx context.Context) {
		seed, shoot, link := apart(ctx, "e2e-cut", "--surplus-patience=10s")
		p := newPool(ctx, "cut", 3, excess(1), repairedAfter(10*time.Minute))
		p.rests(ctx, 3, 1, "Complete")
		p.work(ctx, 2)
		spare, idle := p.reserve(ctx)[0], p.idle(ctx)[0]
		setFault(ctx, "machines", idle, "ready: Unknown")
		Eventually(p.reservedNow(ctx)).WithContext(ctx).ShouldNot(ContainElement(spare))

		By("cutting the link, then giving pods to the machines that were empty")
		link.Cut()
		Eventually(p.saying(ctx)).WithContext(ctx).Should(HavePrefix("ClusterUnreachable, "))
		setFault(ctx, "machines", idle, "")
		p.moreWork(ctx, 4)
		Eventually(func() []string { return p.busy(ctx) }).WithContext(ctx).Should(HaveLen(4))
		busy := p.busy(ctx)
		p.stays(ctx, busy, busy)

		By("lowering the excess, and the replicas for a machine that is empty by now")
		p.want(ctx, 0)
		p.stays(ctx, busy, busy)
		p.moreWork(ctx, 3)
		Eventually(func() []string { return p.idle(ctx) }).WithContext(ctx).Should(HaveLen(1))
		busy = p.busy(ctx)
		p.shrinkBy(ctx, 2, p.idle(ctx)[0])
		Eventually(func() []string { return namesOf(p.machines(ctx)) }).WithContext(ctx).Should(ConsistOf(busy))
		p.moreWork(ctx, 2)
		Eventually(func() []string { return p.idle(ctx) }).WithContext(ctx).Should(HaveLen(1))
		p.stays(ctx, busy, p.busy(ctx))
		busy, idle = p.busy(ctx), p.idle(ctx)[0]
		mended := time.Now()

		By("mending the link: the empty machine enters the reserve, once its Node has the taint and its pods were checked again")
		p.want(ctx, 1)
		link.Mend()
		p.rests(ctx, 2, 1, "Complete")
		Expect(p.reserve(ctx)).To(ConsistOf(idle))
		Expect(p.busy(ctx)).To(Equal(busy))
		Expect(holding(mended, idle, seed, shoot)).To(HaveExactElements("nodes", "look", "machines"))
		p.want(ctx, 0)
		p.rests(ctx, 2, 0, "")
		Expect(p.busy(ctx)).To(Equal(busy))
	})
})

var _ = Describe("In the long run, while the target cluster does not answer,", Label("long", "ours"), Serial, func() {
	It("nothing is released for pods that may have been deleted, and no zone gives a replica to another", func(ctx context.Context) {
		_, _, link := apart(ctx, "e2e-cut-others")
		p := newPool(ctx, "waited", 1, excess(1))
		z := newZones(ctx, "even", []int32{2, 2}, balanced(machine.BalanceContinuous))
		p.rests(ctx, 1, 1, "Complete")
		z.settle(ctx, 2, 2)
		z.says(ctx, "ZonesBalanced", "True Even")
		p.work(ctx, 1)
		p.moreWork(ctx, 2)
		Eventually(p.waiting(ctx)).WithContext(ctx).Should(Equal(1))

		By("cutting the link, then deleting the waiting pod, allowing a release, and scaling one of the zones")
		link.Cut()
		Eventually(p.saying(ctx)).WithContext(ctx).Should(HavePrefix("ClusterUnreachable, "))
		p.moreWork(ctx, 1)
		Eventually(p.waiting(ctx)).WithContext(ctx).Should(BeZero())
		p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:"1:4:1"}}}`, machine.BoundsAnnotation))
		z[0].scale(ctx, 4)
		z.settle(ctx, 4, 2)
		z.says(ctx, "ZonesBalanced", "False ClusterUnreachable")
		Consistently(func(g Gomega) {
			g.Expect(p.replicas(ctx)).To(Equal(1))
			g.Expect(z.replicas(ctx)).To(Equal("4/2"))
		}, "10s", "1s").Should(Succeed())

		By("mending the link: zones are balanced, and only a pod that is waiting now gets a machine")
		link.Mend()
		z.settle(ctx, 3, 3)
		p.rests(ctx, 1, 1, "Complete")
		Expect(p.replicas(ctx)).To(Equal(1))
		p.moreWork(ctx, 2)
		p.rests(ctx, 2, 1, "Complete")
	})
})

// waiting is the number of the pool's pods that have no place yet.
func (p pool) waiting(ctx context.Context) func() (int, error) {
	return func() (int, error) {
		list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "work=" + p.name, FieldSelector: "spec.nodeName="})
		if err != nil {
			return 0, err
		}
		return len(list.Items), nil
	}
}

// idle are the machines that run no pod of work, sorted.
func (p pool) idle(ctx context.Context) []string {
	GinkgoHelper()
	busy := p.busy(ctx)
	names := slices.DeleteFunc(p.serving(ctx), func(name string) bool { return slices.Contains(busy, name) })
	slices.Sort(names)
	return names
}

// stays expects for a while that nothing is decided: the machines are these, all serve, the pods stay where they are.
func (p pool) stays(ctx context.Context, names, busy []string) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		list, err := p.machines(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(namesOf(list, nil)).To(ConsistOf(names))
		for _, m := range list {
			g.Expect(m.DeletionTimestamp).To(BeNil(), m.Name)
			g.Expect(m.Annotations).NotTo(HaveKey(machine.ReserveAnnotation), m.Name)
		}
		nodes, err := p.nodes(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(nodes).NotTo(ContainElement(Satisfy(func(n corev1.Node) bool { return holds(&n) })))
		g.Expect(p.busy(ctx)).To(Equal(busy))
		g.Expect(p.saying(ctx)()).To(HavePrefix("ClusterUnreachable, "))
	}, "25s", "1s").Should(Succeed())
}

// reservedNow are the machines in reserve.
func (p pool) reservedNow(ctx context.Context) func() ([]string, error) {
	return func() ([]string, error) { _, reserve, err := p.split(ctx); return reserve, err }
}

// holding is what the manager has done to hold a machine since a moment, in that order: it has closed its Node, looked at the pods
// there, marked the Machine.
func holding(since time.Time, name string, clusters ...*localcluster.Cluster) (steps []string) {
	GinkgoHelper()
	what := func(r audit.Request) string {
		switch {
		case !strings.HasSuffix(r.User, ":"+mcm) || r.Refused() || r.Subresource != "" || r.Answered.Before(since):
			return ""
		case r.Resource == "pods" && strings.Contains(r.URI, url.Values{"fieldSelector": {"spec.nodeName=" + name}}.Encode()):
			return "look"
		case r.Verb == "patch" && r.Name == name:
			return r.Resource
		}
		return ""
	}
	var all []audit.Request
	for _, c := range clusters {
		log, err := audit.Open(c.AuditLog())
		Expect(err).NotTo(HaveOccurred())
		defer log.Close()
		requests, err := log.Read(func(r audit.Request) bool { return what(r) != "" })
		Expect(err).NotTo(HaveOccurred())
		all = append(all, requests...)
	}
	slices.SortFunc(all, func(a, b audit.Request) int { return a.Answered.Compare(b.Answered) })
	for _, r := range all {
		steps = append(steps, what(r))
	}
	return steps
}
