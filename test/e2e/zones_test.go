// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// Each spec has zones of its own, which are similar to each other and to no one else's.
var _ = Describe("Zones", Label("ours"), func() {
	It("share growth that was requested from one of them, and no machine is created in the wrong one", func(ctx context.Context) {
		z := newZones(ctx, "split", []int32{2, 2, 2}, balanced(machine.BalanceScaleUp))
		z.settle(ctx, 2, 2, 2)
		made := z.record(ctx)
		z[0].scale(ctx, 8)
		z.settle(ctx, 4, 4, 4)
		Expect(z.replicas(ctx)).To(Equal("4/4/4"))
		Expect(made()).To(HaveLen(6), "six were needed, so six were made")
		z.says(ctx, "ZonesBalanced", "True Even")
	})

	DescribeTable("that are paused scale as the others do, share growth with them, and release what is in reserve first",
		func(ctx context.Context, mode machine.BalanceMode) {
			z := newZones(ctx, "paused-"+strings.ToLower(string(mode)), []int32{2, 2}, balanced(mode), excess(1))
			z.rest(ctx, 1, 2, 2)
			z.patch(ctx, `{"spec":{"paused":true}}`)
			reserved := slices.Concat(z[0].reserve(ctx), z[1].reserve(ctx))
			z[0].scale(ctx, 5)
			z.rest(ctx, 1, 4, 3)
			Expect(slices.Concat(z[0].serving(ctx), z[1].serving(ctx))).To(ContainElements(reserved))
			z.says(ctx, "ZonesBalanced", "True Even")
			Expect(z.replicas(ctx)).To(Equal("4/3"))
		},
		Entry("with growth alone", machine.BalanceScaleUp),
		Entry("all the time", machine.BalanceContinuous),
	)

	It("keep their growth where only one of them is dedicated, or they are of different pools", func(ctx context.Context) {
		z := newZones(ctx, "dedicated", []int32{1, 1}, balanced(machine.BalanceScaleUp))
		z.settle(ctx, 1, 1)
		z[0].patch(ctx, `{"spec":{"template":{"spec":{"nodeTemplate":{"spec":{"taints":[{"key":"dedicated","value":"batch","effect":"NoSchedule"}]}}}}}}`)
		z[0].scale(ctx, 3)
		z.settle(ctx, 3, 1)
		z[0].patch(ctx, `{"metadata":{"labels":{"worker.gardener.cloud/pool":"another"}},"spec":{"template":{"spec":{"nodeTemplate":{"spec":{"taints":null}}}}}}`)
		z[0].scale(ctx, 4)
		z.settle(ctx, 4, 1)
		z[0].patch(ctx, `{"metadata":{"labels":{"worker.gardener.cloud/pool":"dedicated"}}}`)
		z[0].scale(ctx, 5)
		z.settle(ctx, 4, 2)
	})

	It("spread the excess of their pool, whatever its form", func(ctx context.Context) {
		z := newZones(ctx, "spread", []int32{2, 1, 2}, poolExcess("4"))
		// Which zone has the one more depends on which of them were there first: what is in place is not moved for a tie.
		z.reserves(ctx, "1/2/1", "2/1/1", "1/1/2")
		z.patch(ctx, poolExcessPatch("30%"))
		z.reserves(ctx, "0/2/0", "1/1/0", "0/1/1", "1/0/1")
		z.says(ctx, "PoolExcessSpread", "True Spread")
	})
})

// settle waits until each zone is at rest at so many machines, none of them in reserve.
func (z zones) settle(ctx context.Context, replicas ...int32) {
	GinkgoHelper()
	for i, n := range replicas {
		z[i].settles(ctx, n)
	}
}

// rest waits until each zone is at rest with so many machines that serve, and as many in reserve as the others have.
func (z zones) rest(ctx context.Context, reserve int, serving ...int) {
	GinkgoHelper()
	for i, n := range serving {
		z[i].rests(ctx, n, reserve, "Complete")
	}
}

// replicas are what each zone is asked for, as in 4/4/4.
func (z zones) replicas(ctx context.Context) (string, error) {
	return z.each(func(p pool) (string, error) {
		d, err := p.deployment(ctx)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(d.Spec.Replicas), nil
	})
}

func (z zones) each(what func(pool) (string, error)) (string, error) {
	var words []string
	for _, p := range z {
		word, err := what(p)
		if err != nil {
			return "", err
		}
		words = append(words, word)
	}
	return strings.Join(words, "/"), nil
}

func (z zones) annotations(ctx context.Context, key string) string {
	return must(z.each(func(p pool) (string, error) {
		d, err := p.deployment(ctx)
		if err != nil {
			return "", err
		}
		return d.Annotations[key], nil
	}))
}

func (z zones) shares(ctx context.Context) string { return z.annotations(ctx, machine.ShareAnnotation) }

func (z zones) moves(ctx context.Context) string { return z.annotations(ctx, machine.MoveAnnotation) }

func (z zones) bounds(ctx context.Context, want string) {
	GinkgoHelper()
	Eventually(func() string {
		return strings.ReplaceAll(z.annotations(ctx, machine.BoundsAnnotation), "/", " ")
	}).Should(Equal(want))
}

// reserves waits for one of some numbers of ready machines in reserve, and shares that say the same.
func (z zones) reserves(ctx context.Context, wanted ...string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		ready, err := z.readyReserves(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(wanted).To(ContainElement(ready))
		g.Expect(z.shares(ctx)).To(Equal(ready))
	}).Should(Succeed())
}

func (z zones) readyReserves(ctx context.Context) (string, error) {
	return z.each(func(p pool) (string, error) {
		list, err := p.machines(ctx)
		n := 0
		for _, m := range list {
			if m.Status.CurrentStatus.Phase == "Running" && m.DeletionTimestamp == nil && m.Annotations[machine.ReserveAnnotation] != "" {
				n++
			}
		}
		return fmt.Sprint(n), err
	})
}

func (z zones) condition(ctx context.Context, at int, kind string) string {
	d := must(z[at].deployment(ctx))
	for _, c := range d.Status.Conditions {
		if string(c.Type) == kind {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// says waits until each zone has this condition.
func (z zones) says(ctx context.Context, kind, want string) {
	GinkgoHelper()
	for i := range z {
		Eventually(func() string { return z.condition(ctx, i, kind) }).Should(Equal(want))
	}
}
