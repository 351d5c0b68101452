// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// story is something that happens to a Shoot with a pool of three machines in each of its zones.
type story struct {
	name string
	// size is how many machines each zone has instead of three.
	size int32
	// alone has nothing to compare with: stock machine-controller-manager does not know what happens there.
	alone bool
	// zones of the pool; default: one.
	zones []string
	// shape changes the pool before there is a Shoot.
	shape func(*extensionsv1alpha1.WorkerPool)
	// local has machines of provider-local, and not of the virtual provider.
	local bool
	// from is the image that the story begins with; default: the one that it is about.
	from string
	act  func(context.Context, *told)
}

// told is a story while it happens to a Shoot.
type told struct {
	*shoot
	*row
	// n is how many machines there are to be.
	n int
}

var stories = []story{
	{name: "a pool is at rest", act: func(ctx context.Context, t *told) {
		n := t.listen(ctx)
		t.note("%v", n)
		t.expect("it asks for nothing in vain", n.asksInVain())
	}},
	{name: "a reserve of two is added", act: func(ctx context.Context, t *told) { t.addReserve(ctx) }},
	{name: "a reserve of two is added in two zones", zones: []string{"a", "b"}, act: func(ctx context.Context, t *told) { t.addReserve(ctx) }},
	{name: "nodes are rolled beside a reserve of two", act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		t.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) { *w.Pools[0].NodeAgentSecretName += "0" })
		t.expect("the extension is content with the rollout", t.rolled(ctx))
	}},
	{name: "reserve machines cannot be made", alone: true, act: func(ctx context.Context, t *told) {
		t.faults(ctx, "outage: true")
		t.askForReserve(ctx)
		t.expect("the extension is content while they cannot", t.reconciled(ctx))
		t.expect("there is the machine for workload, and no other", t.settling(ctx, t.n))
		t.faults(ctx, "")
		t.n += spares
		t.expect("the reserve comes up once they can", t.settling(ctx, t.n))
	}},
	{name: "reserve machines boot for ten minutes", alone: true, act: func(ctx context.Context, t *told) {
		t.faults(ctx, "extraBootDelay: 10m")
		t.askForReserve(ctx)
		t.expect("they boot", t.booting(ctx, spares))
		t.expect("the extension is content while they boot", t.reconciled(ctx))
		t.faults(ctx, "")
		t.n += spares
		t.expect("the reserve comes up", t.settling(ctx, t.n))
	}},
	{name: "a Shoot's owner writes annotations in every wrong form", alone: true, act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		before := t.picture(ctx)
		for _, wrong := range wrongAnnotations() {
			t.ask(ctx, wrong)
			t.expect(fmt.Sprintf("the condition says what to write instead of %v", wrong), t.says(ctx, "PoolExcessSpread", "Invalid"))
			t.expect(fmt.Sprintf("the reserve stays as it is with %v", wrong), t.changed(ctx, before))
		}
		t.ask(ctx, map[string]string{machine.BoundsAnnotation: "3:9:2", machine.BalanceAnnotation: "Sometimes"})
		t.expect("the condition is content again", t.says(ctx, "PoolExcessSpread", "Spread"))
		t.expect("another condition says what to write about zones", t.says(ctx, "ZonesBalanced", "Invalid"))
		t.expect("the reserve stays as it is", t.changed(ctx, before))
	}},
	{name: "a Shoot's owner asks for what cannot be", alone: true, act: func(ctx context.Context, t *told) {
		t.ask(ctx, map[string]string{machine.PoolExcessAnnotation: "2"})
		t.expect("the condition says what to write without a maximum", t.says(ctx, "PoolExcessSpread", "MaximumUnknown"))
		t.expect("the condition names the right that is missing", t.says(ctx, "RightsGranted", "Forbidden"))
		t.ask(ctx, map[string]string{machine.BoundsAnnotation: "3:3:2"})
		t.expect("the condition says that there is no room", t.says(ctx, "PoolExcessSpread", "NoRoom"))
	}},
	{name: "a pool with a reserve is removed", act: func(ctx context.Context, t *told) {
		t.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) {
			extra := newPool("extra", 1, 3, "a")
			if extra.Annotations = reserved(extra, 1); t.shoot.image != evenkeel {
				extra.Minimum++
			}
			w.Pools = append(w.Pools, extra)
		})
		t.expect("the extension is content with another pool", t.reconciled(ctx))
		t.expect("it comes up", t.settling(ctx, t.n+2))
		t.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) { w.Pools = w.Pools[:1] })
		t.expect("the extension removes it", t.reconciled(ctx))
	}},
	{name: "the maximum falls below what there is", act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		t.update(ctx, func(w *extensionsv1alpha1.WorkerSpec) { w.Pools[0].Minimum, w.Pools[0].Maximum = 3, 4 })
		t.expect("the extension is content with the new maximum", t.reconciled(ctx))
		t.n = 4
		t.expect("there are four machines", t.settling(ctx, t.n))
		pause(ctx, secondTry)
	}},
	{name: "a Shoot with a reserve hibernates and wakes up", act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		for range nights() {
			t.expect("the extension hibernates it", t.hibernate(ctx))
			t.expect("the extension wakes it up", t.wake(ctx))
			t.expect("all machines come back", t.settling(ctx, t.n))
		}
	}},
	{name: "the image is swapped under thirty machines and swapped back", from: stock, size: 30, act: func(ctx context.Context, t *told) {
		t.occupy(ctx, 12)
		before := t.picture(ctx)
		t.swap(ctx, t.row.image)
		t.expect("there are as many machines after the swap", t.settling(ctx, t.n))
		t.expect("the swap changes nothing", t.changed(ctx, before))
		t.swap(ctx, stock)
		t.expect("there are as many machines after the swap back", t.settling(ctx, t.n))
		t.expect("the swap back changes nothing", t.changed(ctx, before))
		t.deletePods(ctx)
	}},
	{name: "the image is swapped back beside a reserve of two", act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		before := t.names(ctx)
		t.swap(ctx, stockAgain)
		t.expect("there are as many machines after the swap back", t.settling(ctx, t.n))
		t.expect("no machine goes", t.gone(ctx, before))
		t.expect("no Node keeps the reserve's taint", t.eventually(ctx, func() error { return t.tainted(ctx) }))
	}},
	{name: "the control plane migrates beside a reserve of two", act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		before := t.names(ctx)
		t.expect("the extension restores it", t.migrate(ctx))
		t.expect("there are as many machines after the migration", t.settling(ctx, t.n))
		t.expect("no machine goes", t.gone(ctx, before))
	}},
	{name: "Gardener's autoscaler adds two machines and takes them away, beside a reserve of two", act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		name := t.deployments(ctx)[0].Name
		f := newFork(ctx, t.namespace)
		t.note("the autoscaler counts %d instances, at a target size of %d", f.instances(ctx, name), f.read[name].Spec.Replicas)
		t.expect("the autoscaler may add two", f.grow(ctx, name, 2, 9))
		t.expect("there are two machines more", t.settling(ctx, t.n+2))
		f = newFork(ctx, t.namespace)
		t.expect("the autoscaler may take two away", f.shrink(ctx, name, t.serving(ctx)[:2]...))
	}},
}

var _ = Describe("A story", func() {
	for i, story := range slices.Concat(stories, scaling, updates, localStories()) {
		It(story.name, func(ctx context.Context) {
			if story.local {
				startInfra(ctx)
			}
			if os.Getenv("PEER") == "none" && !story.alone {
				Expect(tell(ctx, fmt.Sprintf("ours%d", i), evenkeel, story).wrong).To(BeEmpty())
				return
			}
			peer := &row{}
			if !story.alone {
				peer = tell(ctx, fmt.Sprintf("stock%d", i), stock, story)
			}
			ours := tell(ctx, fmt.Sprintf("ours%d", i), evenkeel, story)
			ours.expect("gardenlet finds nodes not ready no longer than with stock, and for no other reason", ours.nodes.beyond(peer.nodes))
			ours.expect("the extension finds the Worker unhealthy no longer than with stock, and for no other reason", ours.worker.beyond(peer.worker))
			Expect(slices.Concat(peer.wrong, ours.wrong)).To(BeEmpty())
		})
	}
})

// tell has a story happen to a Shoot of its own, and judges how it ends.
func tell(ctx context.Context, name, image string, story story) *row {
	GinkgoHelper()
	if len(story.zones) == 0 {
		story.zones = []string{"a"}
	}
	minimum := cmp.Or(story.size, 3) * int32(len(story.zones))
	pool := newPool("pool", minimum, 3*minimum, story.zones...)
	if story.shape != nil {
		story.shape(&pool)
	}
	s := prepareShoot(ctx, name, cmp.Or(story.from, image), pool)
	if story.local {
		s.useProviderLocal(ctx)
	}
	s.begin(ctx)
	defer s.remove(ctx)
	Expect(s.reconciled(ctx)).To(Succeed(), "the pool comes up")
	s.settles(ctx, int(minimum))
	t := &told{shoot: s, row: newRow(story.name, image), n: int(minimum)}
	w := s.watchHealth(ctx)
	defer w.end()
	story.act(ctx, t)
	t.expect("there are as many machines as are to be", s.settling(ctx, t.n))
	w.end()
	t.row.nodes, t.row.worker, t.row.most = w.seen()
	t.expect("there are never more machines than the maximum and a rollout's surge", w.beyondMaximum())
	t.judge(ctx)
	begin := time.Now()
	s.remove(ctx)
	t.note("deleted, with all machines, in %.1fs", time.Since(begin).Seconds())
	slowest, err := s.kubelet.overdue(image)
	t.note("ended at most %.1fs after SIGTERM", slowest.Seconds())
	t.expect("its processes end within the grace period of their pods", err)
	return t.row
}

// judge is what has to be true whenever nothing happens.
func (t *told) judge(ctx context.Context) {
	GinkgoHelper()
	reason, message, err := t.everyNodeReady(ctx)
	Expect(err).NotTo(HaveOccurred())
	t.expect("gardenlet finds every node ready at rest", unhealthy(reason, message))
	detail, err := t.workerHealth(ctx)
	Expect(err).NotTo(HaveOccurred())
	t.expect("the extension finds the Worker healthy at rest", unhealthy(kindOf(detail), detail))
}

func unhealthy(reason, message string) error {
	if reason == "" {
		return nil
	}
	return fmt.Errorf("%s: %s", reason, message)
}
