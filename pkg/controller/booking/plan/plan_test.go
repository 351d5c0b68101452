// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	. "github.com/evenkeel/evenkeel/pkg/controller/booking/plan"
	"github.com/evenkeel/evenkeel/pkg/fit"
	"github.com/evenkeel/evenkeel/test/fixture"
)

func TestPlan(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Booking: plan")
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// story is a cluster with reserves and requests.
type story struct {
	View
	templates map[string]*corev1.PodTemplate
}

func tell() *story { return &story{View: View{Now: noon}, templates: map[string]*corev1.PodTemplate{}} }

// pool adds a MachineDeployment with so many machines of four CPUs ready in reserve, in a zone of its name.
func (s *story) pool(name string, ready int, change ...func(*Pool)) *story {
	p := Pool{Deployment: &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}, Ready: ready, Used: map[string]int{}}
	p.Deployment.Annotations = map[string]string{machine.BoundsAnnotation: "1:100:5"}
	p.Node = fixture.Node("sample", func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = name })
	for _, f := range change {
		f(&p)
	}
	s.Pools = append(s.Pools, p)
	return s
}

// dedicated has the MachineDeployment show whom machines are dedicated to.
func dedicated(text string) func(*Pool) {
	return func(p *Pool) { p.Deployment.Annotations[machine.DedicatedAnnotation] = text }
}

func used(request string, machines int) func(*Pool) {
	return func(p *Pool) { p.Used["jobs/"+request] = machines }
}

// template adds a PodTemplate that requests so many CPUs.
func (s *story) template(name, cpu string, change ...func(*corev1.PodSpec)) *story {
	t := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: name}}
	t.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	for _, f := range change {
		f(&t.Template.Spec)
	}
	s.templates[name] = t
	return s
}

// request adds one for pods of a template, the oldest first.
func (s *story) request(name, template string, count int32, change ...func(*provisioningv1.ProvisioningRequest)) *story {
	o := &provisioningv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(len(s.Requests)-100) * time.Second))}}
	o.Spec.ProvisioningClassName = provisioningv1.ClassReserved
	o.Spec.PodSets = []provisioningv1.PodSet{{PodTemplateRef: provisioningv1.Reference{Name: template}, Count: count}}
	for _, f := range change {
		f(o)
	}
	r := Request{Object: o}
	for _, set := range o.Spec.PodSets {
		r.Templates = append(r.Templates, s.templates[set.PodTemplateRef.Name])
	}
	s.Requests = append(s.Requests, r)
	return s
}

func also(template string, count int32) func(*provisioningv1.ProvisioningRequest) {
	return func(o *provisioningv1.ProvisioningRequest) {
		o.Spec.PodSets = append(o.Spec.PodSets, provisioningv1.PodSet{PodTemplateRef: provisioningv1.Reference{Name: template}, Count: count})
	}
}

func parameter(name, value string) func(*provisioningv1.ProvisioningRequest) {
	return func(o *provisioningv1.ProvisioningRequest) {
		if o.Spec.Parameters == nil {
			o.Spec.Parameters = map[string]provisioningv1.Parameter{}
		}
		o.Spec.Parameters[name] = provisioningv1.Parameter(value)
	}
}

// provisioned has machines be booked for a request some time ago.
func provisioned(ago time.Duration, machines string) func(*provisioningv1.ProvisioningRequest) {
	return func(o *provisioningv1.ProvisioningRequest) {
		o.Status.Conditions = append(o.Status.Conditions, metav1.Condition{Type: "Provisioned", Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-ago))})
		o.Status.ProvisioningClassDetails = map[string]provisioningv1.Detail{"evenkeel.dev/booked": provisioningv1.Detail(machines), "evenkeel.dev/left": provisioningv1.Detail(machines)}
	}
}

func condition(name string) func(*provisioningv1.ProvisioningRequest) {
	return func(o *provisioningv1.ProvisioningRequest) {
		o.Status.Conditions = append(o.Status.Conditions, metav1.Condition{Type: name, Status: metav1.ConditionTrue})
	}
}

func left(machines string) func(*provisioningv1.ProvisioningRequest) {
	return func(o *provisioningv1.ProvisioningRequest) {
		o.Status.ProvisioningClassDetails["evenkeel.dev/left"] = provisioningv1.Detail(machines)
	}
}

func inNamespace(name string) func(*provisioningv1.ProvisioningRequest) {
	return func(o *provisioningv1.ProvisioningRequest) { o.Namespace = name }
}

// aged makes a request this old.
func aged(age time.Duration) func(*provisioningv1.ProvisioningRequest) {
	return func(o *provisioningv1.ProvisioningRequest) { o.CreationTimestamp = metav1.NewTime(noon.Add(-age)) }
}

// reserve adds one of this controller's.
func (s *story) reserve(pool string, machines int32, bookings string) *story {
	s.Reserves = append(s.Reserves, &autoscaling.Reserve{
		ObjectMeta: metav1.ObjectMeta{Name: ReserveName(pool), Annotations: map[string]string{machine.DedicatedAnnotation: bookings}, Labels: map[string]string{OwnLabel: "true"}},
		Spec:       autoscaling.ReserveSpec{Pools: autoscaling.ReservePools{Names: []string{pool}}, Replicas: machines},
	})
	return s
}

// changes are the Reserves that a plan writes, as in "a: jobs/ProvisioningRequest/r=2".
func changes(p Plan) string {
	var words []string
	for _, c := range p.Changes {
		after := c.After("default")
		if after == nil {
			words = append(words, "no "+c.Name())
			continue
		}
		Expect(after.Spec.Pools.Names).To(Equal([]string{c.Pool}))
		sum := int32(0)
		for _, b := range c.Bookings {
			sum += b.Machines
		}
		Expect(after.Spec.Replicas).To(Equal(sum))
		words = append(words, c.Pool+": "+strings.ReplaceAll(after.Annotations[machine.DedicatedAnnotation], "jobs/ProvisioningRequest/", ""))
	}
	return strings.Join(words, ", ")
}

// states are the conditions of requests, as in "r: Accepted Provisioned=CapacityIsFound".
func states(p Plan) string {
	var all []string
	for _, d := range p.Decisions {
		words := []string{d.Request.Name + ":"}
		for _, c := range d.After(noon).Status.Conditions {
			text := c.Type
			if c.Status == metav1.ConditionFalse {
				text += "=" + c.Reason
			}
			words = append(words, text)
		}
		details := d.After(noon).Status.ProvisioningClassDetails
		for _, name := range slices.Sorted(maps.Keys(details)) {
			words = append(words, fmt.Sprintf("%s[%s]", strings.TrimPrefix(name, "evenkeel.dev/"), details[name]))
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, ", ")
}

func inZone(name string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{corev1.LabelTopologyZone: name} }
}

var found, missing = "Accepted Provisioned=CapacityIsFound", "Accepted Provisioned=CapacityIsNotFound"

var _ = DescribeTable("A plan",
	func(wantChanges, wantStates string, s *story) {
		p := New(s.View)
		Expect(changes(p)).To(Equal(wantChanges))
		Expect(states(p)).To(Equal(wantStates))
	},
	Entry("nothing", "", "", tell().pool("a", 3)),
	Entry("machines for all pods (1)", "a: r=2", "r: "+found, tell().pool("a", 3).template("t", "2").request("r", "t", 4)),
	Entry("machines of two MachineDeployments (1)", "a: r=1, b: r=2", "r: "+found, tell().pool("a", 1).pool("b", 2).template("t", "4").request("r", "t", 3)),
	Entry("two pod sets (1)", "a: r=1, b: r=1", "r: "+found,
		tell().pool("a", 1).pool("b", 1).template("t", "4", inZone("a")).template("u", "4", inZone("b")).request("r", "t", 1, also("u", 1))),
	Entry("none if one is missing (1)", "", "r: "+missing, tell().pool("a", 3).template("t", "4").request("r", "t", 4)),
	Entry("none if one of two pod sets has no room (1)", "", "r: "+missing,
		tell().pool("a", 1).pool("b", 0).template("t", "4", inZone("a")).template("u", "4", inZone("b")).request("r", "t", 1, also("u", 1))),
	Entry("none if the scheduler may place small pods so that a large one has no room (1)", "", "r: "+missing,
		tell().pool("a", 2).template("t", "4").template("u", "2").request("r", "t", 1, also("u", 2))),
	Entry("beside what DaemonSets take", "a: r=2", "r: "+found, func() *story {
		s := tell().pool("a", 3).template("t", "2").request("r", "t", 2)
		d := fixture.Pod("d")
		d.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1")}
		s.Daemons = append(s.Daemons, fit.NewPod(d, nil))
		return s
	}()),
	Entry("machines for pods that tolerate the taint of the reserve", "a: r=1", "r: "+found, tell().pool("a", 3).template("t", "2", func(s *corev1.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}).request("r", "t", 2)),

	Entry("machines for pods that are to start as a PodGroup", "a: r=2", "r: "+found, tell().pool("a", 3).template("t", "4", func(s *corev1.PodSpec) {
		s.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("g")}
	}).request("r", "t", 2)),

	Entry("not those that are dedicated to others (1)", "", "r: "+missing, tell().pool("a", 3, dedicated("shop=2")).template("t", "4").request("r", "t", 2)),
	Entry("not those that another request has booked (1)", "a: q=2", "q: Provisioned booked[a=2] left[a=2], r: "+missing,
		tell().pool("a", 3, dedicated("jobs/ProvisioningRequest/q=2")).template("t", "4").request("q", "t", 2, provisioned(time.Minute, "a=2")).request("r", "t", 2)),
	Entry("not of a MachineDeployment whose Reserve is somebody else's", "", "r: "+missing, tell().pool("a", 3, func(p *Pool) { p.Taken = true }).template("t", "4").request("r", "t", 2)),
	Entry("not of a MachineDeployment that is being deleted", "", "r: "+missing,
		tell().pool("a", 3, func(p *Pool) { p.Deployment.DeletionTimestamp = &metav1.Time{Time: noon} }).template("t", "4").request("r", "t", 2)),
	Entry("not of a reserve that is drained", "", "r: "+missing,
		tell().pool("a", 3, func(p *Pool) { p.Deployment.Annotations[machine.DrainReserveAnnotation] = "true" }).template("t", "4").request("r", "t", 2)),
	Entry("not of machines that are not known", "", "r: "+missing, tell().pool("a", 3, func(p *Pool) { p.Node = nil }).template("t", "4").request("r", "t", 2)),

	Entry("provisioned once they are dedicated (2)", "", "r: Accepted Provisioned booked[a=2] left[a=2]",
		tell().pool("a", 3, dedicated("jobs/ProvisioningRequest/r=2")).reserve("a", 2, "jobs/ProvisioningRequest/r=2").template("t", "4").request("r", "t", 2)),
	Entry("not yet if fewer are (2)", "", "r: "+found,
		tell().pool("a", 3, dedicated("jobs/ProvisioningRequest/r=1")).reserve("a", 2, "jobs/ProvisioningRequest/r=2").template("t", "4").request("r", "t", 2)),
	Entry("not yet if those of another MachineDeployment are not (2)", "", "r: "+found,
		tell().pool("a", 1, dedicated("jobs/ProvisioningRequest/r=1")).pool("b", 1).reserve("a", 1, "jobs/ProvisioningRequest/r=1").reserve("b", 1, "jobs/ProvisioningRequest/r=1").
			template("t", "4").request("r", "t", 2)),
	Entry("booked as they were, also if it would be different now (2)", "a: r=2", "r: Provisioned booked[a=2] left[a=2]",
		tell().pool("a", 0).pool("b", 5).template("t", "1").request("r", "t", 2, provisioned(time.Minute, "a=2"))),
	Entry("less by those that run its pods (2)", "a: r=1", "r: Provisioned booked[a=3] left[a=1]",
		tell().pool("a", 1, used("r", 2)).reserve("a", 3, "jobs/ProvisioningRequest/r=3").template("t", "4").request("r", "t", 3, provisioned(time.Minute, "a=3"))),
	Entry("not more again when its pods are gone (2)", "a: r=1", "r: Provisioned booked[a=3] left[a=1]",
		tell().pool("a", 3).template("t", "4").request("r", "t", 3, provisioned(time.Minute, "a=3"), left("a=1"))),
	Entry("none if all are in use (2)", "no provisioning-requests.a", "r: Provisioned booked[a=2] left[]",
		tell().pool("a", 3, used("r", 2)).reserve("a", 1, "jobs/ProvisioningRequest/r=1").template("t", "4").request("r", "t", 2, provisioned(time.Minute, "a=2"))),

	Entry("the oldest first (3)", "a: q=2", "q: "+found+", r: "+missing, tell().pool("a", 3).template("t", "4").request("q", "t", 2).request("r", "t", 2)),
	Entry("a small one beside one that is too large (3)", "a: r=1", "q: "+missing+", r: "+found, tell().pool("a", 3).template("t", "4").request("q", "t", 4).request("r", "t", 1)),
	Entry("both if there are enough (3)", "a: q=2 r=1", "q: "+found+", r: "+found, tell().pool("a", 3).template("t", "4").request("q", "t", 2).request("r", "t", 1)),

	Entry("none after ten minutes (4)", "no provisioning-requests.a", "r: Provisioned BookingExpired booked[a=2] left[]",
		tell().pool("a", 3).reserve("a", 2, "jobs/ProvisioningRequest/r=2").template("t", "4").request("r", "t", 2, provisioned(10*time.Minute, "a=2"))),
	Entry("none after the time that it sets (4)", "", "r: Provisioned BookingExpired booked[a=2] left[]",
		tell().pool("a", 3).template("t", "4").request("r", "t", 2, provisioned(time.Minute, "a=2"), parameter("BookingSeconds", "60"))),
	Entry("until the time that it sets (4)", "a: r=2", "r: Provisioned booked[a=2] left[a=2]",
		tell().pool("a", 3).template("t", "4").request("r", "t", 2, provisioned(11*time.Minute, "a=2"), parameter("BookingSeconds", "3600"))),
	Entry("until a day is over, however much longer it sets (4)", "a: r=2", "r: Provisioned booked[a=2] left[a=2]",
		tell().pool("a", 3).template("t", "4").request("r", "t", 2, provisioned(23*time.Hour, "a=2"), parameter("BookingSeconds", "9223372037"))),
	Entry("none after a day, however much longer it sets (4)", "", "r: Provisioned BookingExpired booked[a=2] left[]",
		tell().pool("a", 3).template("t", "4").request("r", "t", 2, provisioned(24*time.Hour, "a=2"), parameter("BookingSeconds", "86401"))),
	Entry("none if it is gone (4)", "no provisioning-requests.a", "", tell().pool("a", 3).reserve("a", 2, "jobs/ProvisioningRequest/r=2")),
	Entry("none once it has expired (4)", "no provisioning-requests.a", "",
		tell().pool("a", 3).reserve("a", 2, "jobs/ProvisioningRequest/r=2").template("t", "4").request("r", "t", 2, provisioned(time.Hour, "a=2"), condition("BookingExpired"))),
	Entry("none once it has failed (4)", "", "", tell().pool("a", 3).template("t", "4").request("r", "t", 2, condition("Failed"))),

	Entry("fails at once if it is not to wait (5)", "", "r: "+missing+" Failed", tell().pool("a", 1).template("t", "4").request("r", "t", 2, parameter("noRetry", "true"))),
	Entry("fails after the time that it sets (5)", "", "r: "+missing+" Failed", tell().pool("a", 1).template("t", "4").request("r", "t", 2, parameter("ValidUntilSeconds", "100"))),
	Entry("waits until then (5)", "", "r: "+missing, tell().pool("a", 1).template("t", "4").request("r", "t", 2, parameter("ValidUntilSeconds", "101"))),
	Entry("waits for longer than a day if it sets that (5)", "", "r: "+missing, tell().pool("a", 1).template("t", "4").request("r", "t", 2, parameter("ValidUntilSeconds", "172800"), aged(47*time.Hour))),
	Entry("waits, however much it sets (5)", "", "r: "+missing, tell().pool("a", 1).template("t", "4").request("r", "t", 2, parameter("ValidUntilSeconds", "9223372037"))),
	Entry("waits with parameters that are no numbers (5)", "", "r: "+missing, tell().pool("a", 1).template("t", "4").request("r", "t", 2, parameter("ValidUntilSeconds", "soon"), parameter("noRetry", "yes"))),
	Entry("is served within the time that it sets (5)", "a: r=1", "r: "+found, tell().pool("a", 1).template("t", "4").request("r", "t", 1, parameter("ValidUntilSeconds", "1"), parameter("noRetry", "true"))),
)

var _ = DescribeTable("A request that is not served says why",
	func(want string, s *story) {
		d := New(s.View).Decisions[0]
		Expect(d.Conditions[1].Message).To(Equal(want))
	},
	Entry(nil, "The reserve has no room for all of 4 pods: 3 machines ready and not booked", tell().pool("a", 3).template("t", "4").request("r", "t", 4)),
	Entry(nil, "PodTemplate t does not exist in namespace jobs", tell().pool("a", 3).request("r", "t", 4)),
	Entry(nil, "Evenkeel cannot decide where a pod of PodTemplate t can run: it claims devices", tell().pool("a", 3).template("t", "1", func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("c")}}
	}).request("r", "t", 4)),
	Entry(nil, "The request is for more than 5000 pods: split it", tell().pool("a", 3).template("t", "1").request("r", "t", 5001)),
	Entry(nil, "The request is for more than 5000 pods: split it", tell().pool("a", 3).template("t", "1").request("r", "t", 3000, also("t", 2001))),
	Entry(nil, "The names of the namespace and of the request are too long together: use a shorter name",
		tell().pool("a", 3).template("t", "1").request(strings.Repeat("r", machine.MaxOwnerLength-len("jobs/ProvisioningRequest/")+1), "t", 1)),
	Entry(nil, "a right is missing", func() *story {
		s := tell().pool("a", 3).template("t", "1").request("r", "t", 1)
		s.Requests[0].Lacks = "a right is missing"
		return s
	}()),
)

var _ = Describe("Many requests", func() {
	It("of one namespace leave their turn to those of another", func() {
		s := tell().pool("a", 1).template("t", "4")
		for i := range 300 {
			s.request(fmt.Sprintf("r%03d", i), "t", 2)
		}
		s.request("z", "t", 1, inNamespace("other"))
		p := New(s.View)
		Expect(p.Changes).To(HaveLen(1))
		Expect(p.Changes[0].Bookings).To(Equal([]machine.Dedication{{Owner: "other/ProvisioningRequest/z", Machines: 1}}))
		Expect(p.Decisions).To(HaveLen(301))
		Expect(p.Decisions[299].Conditions[1].Message).To(Equal("Only 200 requests are considered at a time, and namespaces take turns"))
	})

	It("book machines of one MachineDeployment only as far as it can have owners", func() {
		s := tell().pool("a", 100).template("t", "4")
		for i := range 100 {
			s.request(fmt.Sprintf("r%03d", i), "t", 1)
		}
		Expect(New(s.View).Changes[0].Bookings).To(HaveLen(machine.MaxDedications / 2))
	})
})

var _ = DescribeTable("A plan is made again",
	func(want time.Duration, s *story) { Expect(New(s.View).Again).To(Equal(want)) },
	Entry("never if no request waits", time.Duration(0), tell().pool("a", 1)),
	Entry("later if a request waits, for changes without an event", 10*time.Minute, tell().pool("a", 1).template("t", "4").request("r", "t", 2)),
	Entry("when a booking ends", 9*time.Minute, tell().pool("a", 1).template("t", "4").request("r", "t", 2, provisioned(time.Minute, "a=2"))),
	Entry("when a request has just been provisioned", 10*time.Minute, tell().pool("a", 1, dedicated("jobs/ProvisioningRequest/r=1")).template("t", "4").request("r", "t", 1)),
	Entry("when a request fails", time.Second, tell().pool("a", 1).template("t", "4").request("r", "t", 2, parameter("ValidUntilSeconds", "101"))),
)

var _ = It("The name of a Reserve is that of the MachineDeployment, shortened if it is too long", func() {
	Expect(ReserveName("pool")).To(Equal("provisioning-requests.pool"))
	Expect(len(ReserveName(strings.Repeat("a", 250)))).To(BeNumerically("<=", 253))
	Expect(ReserveName(strings.Repeat("a", 250))).NotTo(Equal(ReserveName(strings.Repeat("a", 249) + "b")))
})
