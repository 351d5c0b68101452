// SPDX-License-Identifier: Apache-2.0

package devices_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/fit/devices"
)

func ofClass(name string) func(*resourceapi.ExactDeviceRequest) {
	return func(e *resourceapi.ExactDeviceRequest) { e.DeviceClassName = name }
}

func reservedFor(n int, prefix string) func(*resourceapi.ResourceClaim) {
	return func(c *resourceapi.ResourceClaim) {
		for i := range n {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{UID: types.UID(fmt.Sprintf("%s%d", prefix, i))})
		}
	}
}

func deleted(c *resourceapi.ResourceClaim) { c.DeletionTimestamp = ptr.To(metav1.Now()) }

// spec changes the spec of a request of one device.
func spec(change func(*resourceapi.ResourceClaimSpec)) resourceapi.ResourceClaimSpec {
	s := wants(1)
	change(&s)
	return s
}

// requests is a spec of so many requests.
func requests(n int) resourceapi.ResourceClaimSpec {
	return spec(func(s *resourceapi.ResourceClaimSpec) {
		one := s.Devices.Requests[0]
		s.Devices.Requests = nil
		for i := range n {
			one.Name = fmt.Sprint("r", i)
			s.Devices.Requests = append(s.Devices.Requests, one)
		}
	})
}

func constraints(n int) resourceapi.ResourceClaimSpec {
	return spec(func(s *resourceapi.ResourceClaimSpec) {
		for range n {
			s.Devices.Constraints = append(s.Devices.Constraints, resourceapi.DeviceConstraint{MatchAttribute: ptr.To[resourceapi.FullyQualifiedName]("a/b")})
		}
	})
}

// waiting adds pods that wait.
func waiting(pods ...*corev1.Pod) func(*cluster) {
	return func(c *cluster) { c.Waiting = append(c.Waiting, pods...) }
}

var _ = DescribeTable("Nothing is decided about a pod",
	func(reason string, c *cluster, p *corev1.Pod) {
		claims, err := c.inventory().Claimed(p)
		Expect(err).To(MatchError(reason))
		Expect(claims).To(BeNil())
	},
	Entry("whose template is missing", "its claim template t does not exist", of(), pod("p", "t")),
	Entry("whose template is in another namespace", "its claim template t does not exist",
		of(template("t", wants(1)), func(c *cluster) { c.Templates[0].Namespace = "other" }), pod("p", "t")),
	Entry("whose claim is missing", "its claim c does not exist", of(), pod("p", "=c")),
	Entry("whose claim was made and is missing", "its claim c does not exist", of(template("t", wants(1))), made(pod("p", "t"), 0, ptr.To("c"))),
	Entry("whose claim is being deleted", "its claim c is being deleted", of(claim("c", wants(1), deleted)), pod("p", "=c")),
	Entry("whose claim was made for another pod", "its claim c belongs to another pod", of(claim("c", wants(1), ownedBy("q"))), made(pod("p", "t"), 0, ptr.To("c"))),
	Entry("whose claim is shared with another one that waits", "its claim c is shared with other pods that wait",
		of(claim("c", wants(1)), waiting(pod("p", "=c"), pod("q", "=c"))), pod("p", "=c")),
	Entry("that has a claim twice", "it has its claim c twice", of(claim("c", wants(1))), pod("p", "=c", "=c")),
	Entry("with a claim of an unknown kind", "its claim c0 is of a kind that is not known here", of(), &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "c0"}}}}),
	Entry("of a class that is missing", "its claim c is of class none, which does not exist", of(claim("c", wants(1, ofClass("none")))), pod("p", "=c")),
	Entry("of a class that is missing in an alternative", "its claim c is of class none, which does not exist", of(claim("c", spec(func(s *resourceapi.ResourceClaimSpec) {
		s.Devices.Requests = []resourceapi.DeviceRequest{{Name: "r", FirstAvailable: []resourceapi.DeviceSubRequest{
			{Name: "a", DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}, {Name: "b", DeviceClassName: "none"},
		}}}
	}))), pod("p", "=c")),
	Entry("with admin access", "its claim c has admin access", of(claim("c", wants(1, func(e *resourceapi.ExactDeviceRequest) { e.AdminAccess = ptr.To(true) }))), pod("p", "=c")),
	Entry("with a part of a device", "its claim c requests a part of a device", of(claim("c", wants(1, func(e *resourceapi.ExactDeviceRequest) {
		e.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1Gi")}}
	}))), pod("p", "=c")),
	Entry("with an unknown request", "its claim c has a request that is not known here", of(claim("c", spec(func(s *resourceapi.ResourceClaimSpec) { s.Devices.Requests[0].Exactly = nil }))), pod("p", "=c")),
	Entry("with an unknown mode", "its claim c has an allocation mode that is not known here", of(claim("c", wants(1, func(e *resourceapi.ExactDeviceRequest) { e.AllocationMode = "Some" }))), pod("p", "=c")),
	Entry("with a negative number", "its claim c requests a negative number of devices", of(claim("c", wants(-1))), pod("p", "=c")),
	Entry("with two requests of one name", "its claim c has a request without a name of its own", of(claim("c", spec(func(s *resourceapi.ResourceClaimSpec) {
		s.Devices.Requests = append(s.Devices.Requests, s.Devices.Requests[0])
	}))), pod("p", "=c")),
	Entry("with a request without a name", "its claim c has a request without a name of its own", of(claim("c", spec(func(s *resourceapi.ResourceClaimSpec) {
		s.Devices.Requests[0].Name = ""
	}))), pod("p", "=c")),
	Entry("with two alternatives of one name", "its claim c has an alternative without a name of its own", of(claim("c", spec(func(s *resourceapi.ResourceClaimSpec) {
		s.Devices.Requests = []resourceapi.DeviceRequest{{Name: "r", FirstAvailable: make([]resourceapi.DeviceSubRequest, 2)}}
	}))), pod("p", "=c")),
	Entry("with an unknown selector", "its claim c has a selector that is not known here", of(claim("c", wants(1, func(e *resourceapi.ExactDeviceRequest) { e.Selectors = []resourceapi.DeviceSelector{{}} }))), pod("p", "=c")),
	Entry("with an unknown constraint", "its claim c has a constraint that is not known here", of(claim("c", spec(func(s *resourceapi.ResourceClaimSpec) {
		s.Devices.Constraints = []resourceapi.DeviceConstraint{{}}
	}))), pod("p", "=c")),
	Entry("whose claim is reserved for as many as can be", "its claim c is reserved for 256 pods, and can be for no more",
		of(claim("c", wants(1), allocated("n", "gpu-0"), reservedFor(256, "q"))), pod("p", "=c")),
	Entry("whose claim waits for conditions", "its claim c waits for conditions of its devices", of(claim("c", wants(1), allocated("n", "gpu-0"), func(c *resourceapi.ResourceClaim) {
		c.Status.Allocation.Devices.Results[0].BindingConditions = []string{"Ready"}
	})), pod("p", "=c")),
	Entry("whose claim is allocated by a malformed selector", "its claim c is allocated on nodes by a selector that is malformed", of(claim("c", wants(1), allocated("n", "gpu-0"), func(c *resourceapi.ResourceClaim) {
		c.Status.Allocation.NodeSelector.NodeSelectorTerms[0].MatchFields[0].Operator = "Near"
	})), pod("p", "=c")),
	Entry("with too many requests", "its claims have more than 32 requests", of(claim("c", requests(17)), claim("d", requests(16))), pod("p", "=c", "=d")),
	Entry("with too many selectors", "its claims have more than 64 selectors", of(claim("c", wants(1, selecting(make([]string, 64)...)))), pod("p", "=c")),
	Entry("with too many constraints", "its claims have more than 16 constraints", of(claim("c", constraints(17))), pod("p", "=c")),
	Entry("with too many constraints in two claims", "its claims have more than 16 constraints", of(claim("c", constraints(9)), claim("d", constraints(8))), pod("p", "=c", "=d")),
	Entry("with claims that are too large", "its claims have more than 8192 bytes",
		of(claim("c", wants(1, selecting(strings.Repeat("x", 4096)))), claim("d", wants(1, selecting(strings.Repeat("x", 4096))))), pod("p", "=c", "=d")),
	Entry("that requests what a class provides", "it requests example.com/gpu, which devices of class gpu provide",
		of(func(c *cluster) { c.Classes[0].Spec.ExtendedResourceName = ptr.To("example.com/gpu") }), requesting("example.com/gpu", "1")),
	Entry("that requests what every class provides", "it requests deviceclass.resource.kubernetes.io/gpu, which devices of class gpu provide",
		of(), requesting("deviceclass.resource.kubernetes.io/gpu", "1")),
)

func requesting(name corev1.ResourceName, amount string) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(amount)}}}}}}
}

var _ = DescribeTable("A pod claims nothing",
	func(p *corev1.Pod) {
		claims, err := of().inventory().Claimed(p)
		Expect(err).NotTo(HaveOccurred())
		Expect(claims).To(BeNil())
	},
	Entry("without claims", pod("p")),
	Entry("whose claim was not needed", made(pod("p", "t"), 0, nil)),
	Entry("that requests none of what a class provides", requesting("deviceclass.resource.kubernetes.io/gpu", "0")),
	Entry("that requests what no class provides", requesting("example.com/gpu", "1")),
)

var _ = DescribeTable("Something is decided about a pod",
	func(c *cluster, p *corev1.Pod) {
		claims, err := c.inventory().Claimed(p)
		Expect(err).NotTo(HaveOccurred())
		Expect(claims).NotTo(BeNil())
	},
	Entry("with a claim of its own, though others have others", of(claim("c", wants(1)), claim("d", wants(1)), waiting(pod("p", "=c"), pod("q", "=d"))), pod("p", "=c")),
	Entry("whose claim is shared and allocated", of(claim("c", wants(1), allocated("n", "gpu-0")), waiting(pod("p", "=c"), pod("q", "=c"))), pod("p", "=c")),
	Entry("whose claim is shared with one of another namespace by name", of(claim("c", wants(1)), waiting(pod("p", "=c"), func() *corev1.Pod {
		q := pod("q", "=c")
		q.Namespace = "other"
		return q
	}())), pod("p", "=c")),
	Entry("whose claim is reserved for it and as many as can be", of(claim("c", wants(1), allocated("n", "gpu-0"), reservedFor(255, "q"), reservedFor(1, "p"))), func() *corev1.Pod {
		p := pod("p", "=c")
		p.UID = "p0"
		return p
	}()),
	Entry("whose claim is reserved for all but one", of(claim("c", wants(1), allocated("n", "gpu-0"), reservedFor(255, "q"))), pod("p", "=c")),
	Entry("that may have admin access, and has none", of(claim("c", wants(1, func(e *resourceapi.ExactDeviceRequest) { e.AdminAccess = ptr.To(false) }))), pod("p", "=c")),
	Entry("with as many requests as may be", of(claim("c", requests(16)), claim("d", requests(16))), pod("p", "=c", "=d")),
	Entry("with as many constraints as may be", of(claim("c", constraints(16))), pod("p", "=c")),
	Entry("with a large configuration", of(claim("c", spec(func(s *resourceapi.ResourceClaimSpec) {
		s.Devices.Config = []resourceapi.DeviceClaimConfiguration{{Requests: []string{strings.Repeat("x", MaxBytes)}}}
	}))), pod("p", "=c")),
)

var _ = Describe("The shape of claims", func() {
	c := of(template("t", wants(1)), template("same", wants(1)), template("other", wants(2)),
		claim("mine", wants(1)), claim("yours", wants(1)), claim("p-c0", wants(1), ownedBy("p")), claim("q-c0", wants(1), ownedBy("q"), allocated("n", "gpu-0")))
	shape := func(p *corev1.Pod) string {
		claims, err := c.inventory().Claimed(p)
		Expect(err).NotTo(HaveOccurred())
		return claims.Shape()
	}

	It("is the same for pods of equal templates, also once a claim was made", func() {
		one := shape(pod("a", "t"))
		Expect([]string{shape(pod("b", "t")), shape(pod("b", "same")), shape(made(pod("p", "t"), 0, ptr.To("p-c0")))}).To(HaveEach(one))
	})

	It("differs for other templates, other numbers, claims by name and those that are allocated", func() {
		all := []string{
			shape(pod("a", "t")), shape(pod("a", "other")), shape(pod("a", "t", "t")), shape(pod("a", "t", "other")), shape(pod("a", "other", "t")),
			shape(pod("a", "=mine")), shape(pod("a", "=yours")), shape(made(pod("q", "t"), 0, ptr.To("q-c0"))),
		}
		seen := map[string]bool{}
		for _, s := range all {
			Expect(seen).NotTo(HaveKey(s))
			seen[s] = true
		}
	})

	DescribeTable("tells whether further pods have the same",
		func(p *corev1.Pod, want bool) {
			claims, err := c.inventory().Claimed(p)
			Expect(err).NotTo(HaveOccurred())
			Expect(claims.Repeatable()).To(Equal(want))
		},
		Entry("from a template", pod("a", "t"), true),
		Entry("from a template, once a claim was made", made(pod("p", "t"), 0, ptr.To("p-c0")), true),
		Entry("by name", pod("a", "=mine"), false),
		Entry("one by name", pod("a", "t", "=mine"), false),
		Entry("allocated", made(pod("q", "t"), 0, ptr.To("q-c0")), false),
	)
})

var _ = Describe("What is kept of a claim", func() {
	full := func(change ...func(*resourceapi.ResourceClaim)) *resourceapi.ResourceClaim {
		c := of(claim("c", wants(1, selecting("x")), append(change, ownedBy("p"), reservedFor(2, "u"))...)).Claims[0]
		c.Annotations, c.Labels = map[string]string{"any": "thing"}, map[string]string{"any": "thing"}
		c.Spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{Requests: []string{"r"}}}
		return c
	}

	It("decides the same", func() {
		for _, change := range []func(*resourceapi.ResourceClaim){func(*resourceapi.ResourceClaim) {}, allocated("n", "gpu-0"), deleted} {
			whole, slim := of(has("n", 2)), of(has("n", 2))
			whole.Claims, slim.Claims = []*resourceapi.ResourceClaim{full(change)}, []*resourceapi.ResourceClaim{Slim(full(change))}
			a, err := whole.inventory().Claimed(made(pod("p", "t"), 0, ptr.To("c")))
			b, slimErr := slim.inventory().Claimed(made(pod("p", "t"), 0, ptr.To("c")))
			Expect(fmt.Sprint(slimErr)).To(Equal(fmt.Sprint(err)))
			if err == nil {
				Expect(b.Shape()).To(Equal(a.Shape()))
				Expect(b.Reaches(node("m"))).To(Equal(a.Reaches(node("m"))))
			}
		}
	})

	It("is who has it, and of an allocation what tells who else can have a device", func() {
		whole := full(allocated("n", "gpu-0"), func(c *resourceapi.ResourceClaim) {
			r := &c.Status.Allocation.Devices.Results[0]
			r.AdminAccess, r.ShareID, r.BindingConditions = ptr.To(true), ptr.To[types.UID]("share"), []string{"Ready"}
			r.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse("1Gi")}
			r.Request, c.ResourceVersion = "", "7"
		})
		slim := Slim(whole)
		Expect(slim.Status.Allocation).To(Equal(whole.Status.Allocation))
		Expect(slim.Status.ReservedFor).To(Equal(whole.Status.ReservedFor))
		Expect([]string{slim.Namespace, slim.Name, string(slim.UID), slim.ResourceVersion}).To(Equal([]string{"default", "c", "c", "7"}))
	})

	It("is neither annotations, labels, configuration, nor the spec once it is allocated", func() {
		slim := Slim(full(allocated("n", "gpu-0")))
		Expect(slim.Annotations).To(BeEmpty())
		Expect(slim.Labels).To(BeEmpty())
		Expect(slim.Spec).To(BeZero())
		Expect(Slim(full()).Spec.Devices.Config).To(BeEmpty())
		Expect(Slim(full()).Spec.Devices.Requests).NotTo(BeEmpty())
	})

	It("is no spec if that is too large, and then nothing is decided", func() {
		c := of(claim("c", wants(1, selecting(strings.Repeat("x", MaxBytes)))), template("t", wants(1, selecting(strings.Repeat("x", MaxBytes)))))
		c.Claims[0], c.Templates[0] = Slim(c.Claims[0]), SlimTemplate(c.Templates[0])
		Expect(c.Claims[0].Size()).To(BeNumerically("<", 100))
		Expect(c.Templates[0].Size()).To(BeNumerically("<", 100))
		_, err := c.inventory().Claimed(pod("p", "=c"))
		Expect(err).To(MatchError("its claim c is too large"))
		_, err = c.inventory().Claimed(pod("p", "t"))
		Expect(err).To(MatchError("its claim template t is too large"))
	})

	It("is the spec of a template that is not", func() {
		c := of(template("t", wants(2)))
		Expect(SlimTemplate(c.Templates[0]).Spec.Spec).To(Equal(wants(2)))
	})
})
