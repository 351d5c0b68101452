// SPDX-License-Identifier: Apache-2.0

package release_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// accounts is how the reserve is counted in a storm: at first, and from some moment on.
type accounts struct{ first, then v1alpha1.Accounting }

// accountsOf returns other ones for each of four seeds in a row.
func accountsOf(seed uint64) accounts {
	both := []v1alpha1.Accounting{pool.Additive, pool.Inclusive}
	return accounts{both[seed%2], both[(seed+seed/2)%2]}
}

// counted has replicas of a new pool include the reserve, or not.
func counted(a v1alpha1.Accounting) func(*v1alpha1.MachineDeployment) {
	return func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.AccountingAnnotation] = string(a) }
}

// account has the reserve of all pools be counted so from now on.
func (c *cluster) account(a v1alpha1.Accounting) {
	GinkgoHelper()
	for _, d := range c.deployments() {
		c.patch(d.Name, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AccountingAnnotation, a)
	}
}

// struckByAccounts are what storms in both accountings must have had.
var struckByAccounts = []string{"additive raise", "inclusive raise", "inclusive raise of the whole reserve", "change to additive", "change to inclusive"}

// books watch each write of a MachineDeployment, in both accountings: replicas do not pass max, no machine that workload got is taken
// from it, and a raise takes each machine that it gives to workload out of the reserve that replicas include, once.
type books struct {
	c     *cluster
	limit int32
	// pools are as they were written last. is is how each counts its reserve.
	pools map[string]*v1alpha1.MachineDeployment
	is    map[string]v1alpha1.Accounting
	wrong []string
}

// audited begins books for pools of this max. The lock of the cluster guards them.
func (c *cluster) audited(limit int32) *books {
	b := &books{c: c, limit: limit, pools: map[string]*v1alpha1.MachineDeployment{}, is: map[string]v1alpha1.Accounting{}}
	c.AfterWrite(func(w sim.Write) error {
		if w.Resource == "machinedeployments" && w.Subresource == "" && !w.NoOp() {
			c.set(func() { b.enter(w) })
		}
		return nil
	})
	return b
}

// enter holds a write against the one before it.
func (b *books) enter(w sim.Write) {
	is := world.Decoded[v1alpha1.MachineDeployment](w.Object)
	was := b.pools[w.Name]
	b.pools[w.Name] = is
	if most := max(is.Spec.Replicas, pool.Requested(is)); most > b.limit {
		b.fail(w, "%d replicas, max is %d", most, b.limit)
	}
	if text, recorded := is.Annotations[v1alpha1.AppliedExcessAnnotation]; recorded {
		if _, err := v1alpha1.ParseAppliedExcess(text); err != nil {
			b.fail(w, "%v", err)
		}
	}
	if was == nil {
		return
	}
	before := pool.AppliedOf(was, was.Spec.Replicas)
	if by := int(pool.Requested(is) - pool.Requested(was)); by < 0 {
		b.fail(w, "workload lost %d machines", -by)
	} else if w.User == "release" {
		b.raised(w, by, before, pool.AppliedOf(is, is.Spec.Replicas), int(is.Spec.Replicas-was.Spec.Replicas))
	}
	b.changed(w.Name, is)
}

// raised holds a raise by so many machines against the numbers that it leaves.
func (b *books) raised(w sim.Write, by int, was, is pool.Applied, more int) {
	taken := min(by, was.Counted)
	if by == 0 || is.Excess != was.Excess-taken || is.Counted != was.Counted-taken {
		b.fail(w, "a raise by %d made replicas %d more, and %+v became %+v", by, more, was, is)
	}
	switch {
	case was.Counted == 0:
		b.c.Strike("additive raise")
	case is.Excess == 0:
		b.c.Strike("inclusive raise of the whole reserve")
		fallthrough
	default:
		b.c.Strike("inclusive raise")
	}
}

// changed notes that the accounting of a pool has changed.
func (b *books) changed(name string, d *v1alpha1.MachineDeployment) {
	is, was := b.is[name], b.is[name]
	switch counts := pool.AppliedOf(d, d.Spec.Replicas).Counted > 0; {
	case counts:
		is = pool.Inclusive
	case d.Annotations[v1alpha1.AccountingAnnotation] == string(pool.Additive):
		is = pool.Additive
	}
	if b.is[name] = is; was != "" && was != is {
		b.c.Strike("change to " + strings.ToLower(string(is)))
	}
}

func (b *books) fail(w sim.Write, format string, args ...any) {
	b.wrong = append(b.wrong, fmt.Sprintf("%s %s writes %s: ", w.Time.Format(time.TimeOnly), w.User, w.Name)+fmt.Sprintf(format, args...))
}

// restored begins anew with what a backup contains.
func (b *books) restored() {
	b.c.set(func() { clear(b.pools) })
}

// verdict expects that nothing was wrong so far.
func (b *books) verdict() {
	GinkgoHelper()
	var wrong, harmed []string
	b.c.set(func() { wrong, harmed = append(wrong, b.wrong...), append(harmed, b.c.harmed...) })
	Expect(wrong).To(BeEmpty())
	Expect(harmed).To(BeEmpty(), "pods ran on machines that were deleted")
}

// rest waits until nothing is written any more. A raise that is repeated without end fails before that: in virtual time, it would take
// very long.
func (b *books) rest() {
	GinkgoHelper()
	time.Sleep(time.Minute)
	b.verdict()
	b.c.settle()
	b.verdict()
}

// expectReserve expects of each pool as many machines in reserve as are wanted and fit below limit, and the record of them.
func (c *cluster) expectReserve(limit int, is v1alpha1.Accounting) {
	GinkgoHelper()
	for _, d := range c.deployments() {
		workload, held := int(pool.Requested(&d)), 0
		machines := of(d.Name, c.machines())
		for _, m := range machines {
			if inReserve(m) {
				held++
			}
		}
		want := pool.Applied{Max: pool.Unbounded}
		if n := min(int(ptr.Deref(d.Spec.ExcessReplicas, 0)), limit-workload); n > 0 {
			want = pool.Applied{Excess: n, Max: limit}
		}
		if is == pool.Inclusive {
			want.Counted = want.Excess
		}
		Expect(pool.AppliedOf(&d, d.Spec.Replicas)).To(Equal(want), "%s: %d for workload, %q", d.Name, workload, d.Annotations[v1alpha1.AppliedExcessAnnotation])
		_, recorded := d.Annotations[v1alpha1.AppliedExcessAnnotation]
		Expect(recorded).To(Equal(want.Excess > 0), d.Name)
		Expect(held).To(Equal(want.Excess), d.Name)
		Expect(machines).To(HaveLen(workload+held), d.Name)
	}
}

// workload is how many machines all pools have for pods, as in "a=2 b=1".
func (c *cluster) workload() string {
	var words []string
	for _, d := range c.deployments() {
		words = append(words, fmt.Sprintf("%s=%d", d.Name, pool.Requested(&d)))
	}
	return strings.Join(words, " ")
}

var _ = Describe("The controller", func() {
	It("takes reserve machines that replicas include, once even if an answer is lost, and replicas stay", func() {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:9")
			c.patch("a", `{"spec":{"replicas":3,"excessReplicas":0},"metadata":{"annotations":{%q:"2,max=9,counted=2,replicas=3"}}}`, v1alpha1.AppliedExcessAnnotation)
			c.Start("release", controller(usual))
			c.settle()
			lost := false
			c.AfterWrite(func(w sim.Write) error {
				if w.User != "release" || w.Resource != "machinedeployments" || lost {
					return nil
				}
				lost = true
				return errors.New("the answer is lost")
			})
			for _, left := range []string{"1,max=9,counted=1,replicas=3", "0"} {
				c.create(fresh(1, "p"+left[:1], 4000)...)
				time.Sleep(time.Second)
				Expect(c.waiting()).To(BeZero())
				Expect(c.replicas()).To(Equal("a=3"))
				Expect(c.deployments()[0].Annotations[v1alpha1.AppliedExcessAnnotation]).To(Equal(left))
			}
			c.create(fresh(1, "q", 4000)...)
			c.settle()
			Expect(c.waiting()).To(Equal(1))
			Expect(c.writes(0)).To(HaveLen(2))
		})
	})

	DescribeTable("writes applied replicas together with replicas", func(applied string) {
		play(func(c *cluster) {
			c.grow("a", 1, 2, "1:10", func(d *v1alpha1.MachineDeployment) { d.Annotations[v1alpha1.AppliedReplicasAnnotation] = applied })
			c.Start("release", controller(usual))
			c.create(fresh(1, "p", 1000)...)
			c.settle()
			Expect(c.replicas()).To(Equal("a=2"))
			Expect(c.deployments()[0].Annotations).To(HaveKeyWithValue(v1alpha1.AppliedReplicasAnnotation, "2"))
		})
	},
		Entry("while growth is being split", "1"),
		Entry("also where the applied replicas are out of date", "7"),
	)
})
