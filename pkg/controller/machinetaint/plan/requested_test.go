// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/machinetaint/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/reserve"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// requesting is a MachineDeployment of three, with a field, bounds if any, and what a Reserve requests.
func requesting(field int32, bounds, requested string) plan.View {
	v := owned(field, "", "")
	v.Deployment.Annotations[api.RequestedExcessAnnotation] = requested
	if bounds != "" {
		v.Deployment.Annotations[api.BoundsAnnotation] = bounds
	}
	return v
}

var _ = Describe("What a Reserve requests", func() {
	DescribeTable("counts if it is more than the MachineDeployment's own excess, and is not in the field",
		func(field int32, bounds, requested, applied string, named bool) {
			p := plan.New(requesting(field, bounds, requested))
			Expect(p.Idle).To(BeFalse())
			Expect(p.Deployment.Annotations).To(HaveKeyWithValue(api.AppliedExcessAnnotation, HavePrefix(applied)))
			if bounds == "" {
				Expect(p.Deployment.Field).To(BeNil())
			} else {
				Expect(*p.Deployment.Field).To(BeEquivalentTo(1), "what bounds come to")
			}
			if named {
				Expect(p.Report.Message).To(HaveSuffix("; Reserve shop requests 3"))
			} else {
				Expect(p.Report.Message).NotTo(ContainSubstring("Reserve shop"))
			}
		},
		Entry("than nothing", int32(-1), "", "shop=3", "3", true),
		Entry("than the field", int32(2), "", "shop=3", "3", true),
		Entry("but not less than the field", int32(4), "", "shop=3", "4", false),
		Entry("nor as much as the field", int32(3), "", "shop=3", "3", false),
		Entry("than bounds", int32(-1), "1:9:1", "shop=3", "3,max=9", true),
		Entry("within max", int32(-1), "1:5:1", "shop=3", "2,max=5", true),
	)

	It("leaves the reserve as it is where it is invalid", func() {
		p := plan.New(requesting(2, "", "?"))
		Expect(p.Report.Reason).To(Equal(reserve.Reason("BoundsInvalid")))
		Expect(p.Report.Message).To(ContainSubstring("requested excess"))
	})

	It("is nothing where it is gone", func() {
		v := requesting(-1, "", "shop=0")
		Expect(plan.New(v).Idle).To(BeTrue())
	})
})

var _ = DescribeTable("Claims of dedicated machines are removed",
	func(claimed string, kept bool) {
		v := requesting(-1, "1:9", "shop=1")
		v.Deployment.Annotations[api.ClaimedAnnotation] = claimed
		v.Machines = []plan.Machine{{Machine: pool.Machine{Object: fixture.Machine("m", func(m *mcm.Machine) {
			m.Annotations = map[string]string{api.ReserveAnnotation: api.Reserve{}.String()}
		})}}}
		text, changed := plan.New(v).Deployment.Annotations[api.ClaimedAnnotation]
		Expect(text).To(BeEmpty())
		Expect(changed).To(Equal(!kept))
	},
	Entry("not while the machine is in reserve", "3:m", true),
	Entry("when it has left", "3:other", false),
	Entry("when replicas are lower", "4:m", false),
	Entry("when they cannot be read", "?", false),
)
