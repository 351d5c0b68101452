// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/release/plan"
	"github.com/evenkeel/evenkeel/pkg/reserve"
)

// withClaims returns a MachineDeployment with claims, such as "3:a,b".
func withClaims(uid, claims string) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	if claims != "" {
		d.Annotations = map[string]string{v1alpha1.ClaimedAnnotation: claims}
	}
	return d
}

// claimedOf returns which machines count as claimed. Those in reserve have capital letters, and those
// that are claimed by what the view shows an exclamation mark.
func claimedOf(c plan.Claimed, d *v1alpha1.MachineDeployment, replicas int, machines ...string) string {
	v := reserve.View{Replicas: replicas}
	for _, m := range machines {
		name, shown := strings.CutSuffix(m, "!")
		v.Machines = append(v.Machines, reserve.Machine{Name: strings.ToLower(name), Reserve: name != strings.ToLower(name), Claimed: shown})
	}
	c.Complete(d, v)
	var all []string
	for _, m := range v.Machines {
		if m.Claimed {
			all = append(all, m.Name)
		}
	}
	return strings.Join(all, " ")
}

var _ = Describe("A claim whose record is gone", func() {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var c plan.Claimed
	d := withClaims("1", "")
	BeforeEach(func() {
		c = plan.Claimed{}
		c.Record(withClaims("1", "3:a,b"), now)
	})

	It("is remembered while its machine is shown in reserve", func() {
		c.Record(d, now)
		Expect(claimedOf(c, d, 3, "A", "B", "C")).To(Equal("a b"))
		Expect(claimedOf(c, d, 4, "A", "C", "B")).To(Equal("a b"))
	})

	It("is void while there are fewer replicas than it was made for", func() {
		Expect(claimedOf(c, d, 2, "A", "B", "C!")).To(Equal("c"))
		Expect(claimedOf(c, d, 2, "A!", "B")).To(Equal("a"), "which another record claims for that many")
		Expect(claimedOf(c, d, 3, "A", "B", "C")).To(Equal("a b"))
	})

	It("ends when its machine has left the reserve, also if that enters it again", func() {
		Expect(claimedOf(c, d, 3, "a", "B")).To(Equal("b"))
		Expect(claimedOf(c, d, 3, "A", "B")).To(Equal("b"))
	})

	It("does not concern machines of other MachineDeployments", func() {
		Expect(claimedOf(c, withClaims("2", ""), 3, "A", "B")).To(BeEmpty())
		Expect(c).To(HaveLen(1), "nothing is remembered of these")
	})

	It("is remembered for a minute", func() {
		c.Record(d, now.Add(time.Minute))
		Expect(claimedOf(c, d, 3, "A")).To(Equal("a"))
		c.Record(withClaims("2", "1:x"), now.Add(time.Minute+1))
		Expect(claimedOf(c, d, 3, "A")).To(BeEmpty())
		Expect(claimedOf(c, withClaims("2", ""), 1, "X")).To(Equal("x"))
	})

	It("is replaced by a later record", func() {
		c.Record(withClaims("1", "5:b"), now.Add(50*time.Second))
		c.Record(d, now.Add(100*time.Second))
		Expect(claimedOf(c, d, 4, "A", "B")).To(BeEmpty())
		Expect(claimedOf(c, d, 5, "A", "B")).To(Equal("b"))
	})
})
