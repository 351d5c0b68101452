// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// story is something that happens to a Shoot with a pool of three machines in each of its zones.
type story struct {
	name string
	// zones of the pool; default: one.
	zones []string
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
	{name: "a Shoot with a reserve hibernates and wakes up", act: func(ctx context.Context, t *told) {
		t.addReserve(ctx)
		t.expect("the extension hibernates it", t.hibernate(ctx))
		t.expect("the extension wakes it up", t.wake(ctx))
	}},
	{name: "the image is swapped and swapped back", from: stock, act: func(ctx context.Context, t *told) {
		before := t.picture(ctx)
		t.swap(ctx, t.row.image)
		t.expect("there are as many machines after the swap", t.settling(ctx, t.n))
		t.expect("the swap changes nothing", t.changed(ctx, before))
		t.swap(ctx, stock)
		t.expect("there are as many machines after the swap back", t.settling(ctx, t.n))
		t.expect("the swap back changes nothing", t.changed(ctx, before))
	}},
}

var _ = Describe("A story", func() {
	for i, story := range stories {
		It(story.name, func(ctx context.Context) {
			peer := tell(ctx, fmt.Sprintf("stock%d", i), stock, story)
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
	minimum := int32(3 * len(story.zones))
	s := newShoot(ctx, name, cmp.Or(story.from, image), newPool("pool", minimum, 3*minimum, story.zones...))
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
	t.judge(ctx)
	s.remove(ctx)
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
