// SPDX-License-Identifier: Apache-2.0

package read_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/overview"
	. "github.com/evenkeel/evenkeel/internal/plugin/read"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

func response(request *http.Request, code int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

func once(s scene, c Clusters) overview.Objects {
	GinkgoHelper()
	o, err := c.ReadOnce(s)
	Expect(err).NotTo(HaveOccurred())
	return o
}

var _ = Describe("A look", func() {
	It("reads every object of every kind, however many pages that takes", func() {
		play(everything(), func(s scene) {
			s.deployment("a")
			for i := range 1201 {
				s.pod(fmt.Sprint("p", i))
			}
			_, err := s.core.CoreV1().Nodes().Create(s, fixture.Node("n"), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			o := once(s, s.clusters(s.ConfigFor("reader")))
			Expect(o.Deployments).To(HaveLen(1))
			Expect(o.Nodes).To(HaveLen(1))
			Expect(o.Pods).To(HaveLen(1201))
			Expect(o.Missing).To(BeEmpty())
			Expect(o.PodsUnknown).To(BeFalse())
			Expect(o.At).To(Equal(time.Now()))
		})
	})

	DescribeTable("counts devices only if an excess names some",
		func(change func(s scene)) {
			play(slices.Concat(everything(), sim.Devices), func(s scene) {
				s.deployment("a")
				world.Create(s.core.ResourceV1().DeviceClasses(), &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
				world.Create(s.core.ResourceV1().ResourceSlices(), &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: resourceapi.ResourceSliceSpec{
					Driver: "gpu.example.com", NodeName: new("n"), Pool: resourceapi.ResourcePool{Name: "n", ResourceSliceCount: 1}, Devices: []resourceapi.Device{{Name: "a"}},
				}})
				c := s.clusters(s.ConfigFor("reader"))
				follow := func() overview.Objects {
					f, err := c.Follow(s)
					Expect(err).NotTo(HaveOccurred())
					return f.Objects()
				}
				Expect(once(s, c)).To(HaveField("Devices", BeNil()))
				Expect(follow()).To(HaveField("Devices", BeNil()))
				change(s)
				for _, o := range []overview.Objects{once(s, c), follow()} {
					Expect(o.Devices.Count("n", "gpu")).To(Equal(1))
				}
				c = s.clusters(refusing(s.ConfigFor("reader"), "resourceslices", http.StatusForbidden))
				o := once(s, c)
				Expect(o.Missing).To(Equal([]string{"resourceslices: no rights to list them"}))
				_, unknown := o.Devices.Count("n", "gpu")
				Expect(unknown).To(Equal("resourceslices could not be read: no rights to list them"))
				_, unknown = follow().Devices.Count("n", "gpu")
				Expect(unknown).To(HavePrefix("resourceslices could not be read"))
			})
		},
		Entry("in bounds", func(s scene) {
			world.Patch(s.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), "a", `{"metadata":{"annotations":{"evenkeel.machine.sapcloud.io/bounds":"0:9:devices.gpu=2"}}}`)
		}),
		Entry("in a Reserve", func(s scene) {
			world.Create(s.ours.AutoscalingV1alpha1().Reserves(fixture.Namespace), &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "r"}, Spec: autoscaling.ReserveSpec{Amount: "devices.gpu=2"}})
		}),
	)

	It("keeps the fields of a pod that decide where it may run and what it needs there", func() {
		play(everything(), func(s scene) {
			s.pod("p", func(p *corev1.Pod) {
				p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "much", Value: "text"}}
				p.Spec.NodeSelector = map[string]string{"a": "b"}
				p.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "all of it", "kept": "x"}
			})
			p := once(s, s.clusters(s.ConfigFor("reader"))).Pods[0]
			Expect(p.Spec.Containers[0].Env).To(BeEmpty())
			Expect(p.Spec.Containers[0].Resources.Requests).NotTo(BeEmpty())
			Expect(p.Spec.NodeSelector).To(HaveKey("a"))
			Expect(p.Annotations).To(Equal(map[string]string{"kept": "x"}))
		})
	})

	It("keeps of the largest pods no more than of others", func() {
		play(everything(), func(s scene) {
			large := func(p *corev1.Pod) {
				p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "yes", "notes": strings.Repeat("x", 200<<10)}
				p.Spec.NodeSelector = map[string]string{}
				for i := range 2000 {
					p.Spec.NodeSelector[fmt.Sprintf("example.org/label-%d", i)] = "x"
					p.Spec.Containers[0].Env = append(p.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("E", i), Value: "value"})
				}
			}
			s.pod("waits", large)
			s.pod("runs", large, func(p *corev1.Pod) { p.Spec.NodeName = "a" })
			o, err := s.clusters(s.ConfigFor("reader")).ReadOnce(s)
			Expect(err).NotTo(HaveOccurred())
			Expect(o.Pods).To(HaveLen(2))
			for _, p := range o.Pods {
				Expect(p.Size()).To(BeNumerically("<", 10<<10), p.Name)
				Expect(p.Annotations).To(HaveKey(corev1.MirrorPodAnnotationKey))
			}
		})
	})

	It("reads no more objects of a kind than the limit, and reports that", func() {
		play(everything(), func(s scene) {
			for i := range 3 {
				s.pod(fmt.Sprint("p", i))
			}
			c := s.clusters(s.ConfigFor("reader"))
			SetMost(&c, 2)
			o, err := c.ReadOnce(s)
			Expect(err).NotTo(HaveOccurred())
			Expect(o.Pods).To(HaveLen(2))
			Expect(o.Missing).To(Equal([]string{"pods: more exist than are read; the rest is omitted"}))
		})
	})

	It("keeps nothing of what servers and kubectl note for themselves", func() {
		n := fixture.Node("n", func(n *corev1.Node) {
			n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
			n.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "all of it"}
			n.Status.Images = []corev1.ContainerImage{{Names: []string{"image"}}}
		})
		Slim(n)
		Expect(n.ManagedFields).To(BeEmpty())
		Expect(n.Annotations).To(BeEmpty())
		Expect(n.Status.Images).To(BeEmpty())
		Expect(n.Status.Allocatable).NotTo(BeEmpty())
	})

	It("reports in one line what is not installed, and shows the rest", func() {
		play(sim.Core, func(s scene) {
			s.pod("p")
			o := once(s, s.clusters(s.ConfigFor("reader")))
			Expect(o.Missing).To(Equal([]string{
				"balancers, federatedhorizontalpodautoscalers, machineclasses, machinedeployments, machines, machinesets, reserves: not installed in this cluster",
			}))
			Expect(o.MachinesUnknown).To(BeFalse(), "there are none")
			Expect(o.Pods).To(HaveLen(1))
		})
	})

	It("reads CapacityBuffers of all namespaces of the target cluster, and does not miss them where there are none", func() {
		play(everything(), func(s scene) {
			for _, namespace := range []string{"shop", "ci"} {
				b := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
				_, err := s.ours.CapacityBufferV1beta1().CapacityBuffers(namespace).Create(s, b, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			o := once(s, s.clusters(s.ConfigFor("reader")))
			Expect(o.Buffers).To(HaveLen(2))
			o = once(s, s.clusters(refusing(s.ConfigFor("reader"), "capacitybuffers", http.StatusForbidden)))
			Expect(o.Missing).To(Equal([]string{"capacitybuffers: no rights to list them"}))
			Expect(o.PodsUnknown).To(BeFalse())
		})
	})

	It("reads ProvisioningRequests of all namespaces of the target cluster", func() {
		play(everything(), func(s scene) {
			for _, namespace := range []string{"shop", "ci"} {
				r := &provisioningv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}
				_, err := s.ours.ProvisioningRequestV1().ProvisioningRequests(namespace).Create(s, r, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			o := once(s, s.clusters(s.ConfigFor("reader")))
			Expect(o.Requests).To(HaveLen(2))
			o = once(s, s.clusters(refusing(s.ConfigFor("reader"), "provisioningrequests", http.StatusForbidden)))
			Expect(o.Missing).To(Equal([]string{"provisioningrequests: no rights to list them"}))
			Expect(o.PodsUnknown).To(BeFalse())
		})
	})

	It("does without pods that it may not list", func() {
		play(everything(), func(s scene) {
			s.deployment("a")
			o := once(s, s.clusters(refusing(s.ConfigFor("reader"), "pods", http.StatusForbidden)))
			Expect(o.Missing).To(Equal([]string{"pods: no rights to list them"}))
			Expect(o.PodsUnknown).To(BeTrue())
			Expect(o.Deployments).To(HaveLen(1))
		})
	})

	It("does without Nodes that it may not list", func() {
		play(everything(), func(s scene) {
			c := s.clusters(refusing(s.ConfigFor("reader"), "nodes", http.StatusForbidden))
			f, err := c.Follow(s)
			Expect(err).NotTo(HaveOccurred())
			for _, o := range []overview.Objects{once(s, c), f.Objects()} {
				Expect(o.Missing).To(Equal([]string{"nodes: no rights to list them"}))
				Expect([]bool{o.NodesUnknown, o.PodsUnknown}).To(Equal([]bool{true, false}))
			}
		})
	})

	DescribeTable("does without machines that it may not list, and takes none for missing", func(kind string, unknown bool) {
		play(everything(), func(s scene) {
			c, err := New(refusing(s.ConfigFor("reader"), kind, http.StatusForbidden), s.ConfigFor("reader"), fixture.Namespace)
			Expect(err).NotTo(HaveOccurred())
			c.Clock = clock.RealClock{}
			f, err := c.Follow(s)
			Expect(err).NotTo(HaveOccurred())
			for _, o := range []overview.Objects{once(s, c), f.Objects()} {
				Expect(o.Missing).To(Equal([]string{kind + ": no rights to list them"}))
				Expect([]bool{o.MachinesUnknown, o.NodesUnknown, o.PodsUnknown}).To(Equal([]bool{unknown, false, false}))
			}
		})
	},
		Entry(nil, "machinedeployments", true), Entry(nil, "machinesets", true), Entry(nil, "machines", true),
		Entry(nil, "machineclasses", false), Entry(nil, "reserves", false),
	)

	It("does without a target cluster", func() {
		play(everything(), func(s scene) {
			o := once(s, s.clusters(nil))
			Expect(o.NodesUnknown).To(BeTrue())
			Expect(o.Missing).To(Equal([]string{"nodes, pods: there is no target cluster"}))
			Expect(o.PodsUnknown).To(BeTrue())
		})
	})

	It("does without a target cluster that does not answer, but not without the control cluster", func() {
		play(everything(), func(s scene) {
			s.deployment("a")
			c := s.clusters(s.ConfigFor("target"))
			s.Down(true, "target")
			o := once(s, c)
			Expect(o.Missing).To(HaveLen(1))
			Expect(o.Missing[0]).To(HavePrefix("capacitybuffers, nodes, pods, provisioningrequests: the target cluster does not answer: "))
			Expect(o.PodsUnknown).To(BeTrue())
			Expect(o.Deployments).To(HaveLen(1))
			s.Down(true, "reader")
			_, err := c.ReadOnce(s)
			Expect(err).To(MatchError(ContainSubstring("list ")))
		})
	})
})

// slow is a connection that takes a while for each request.
type slow struct{ http.RoundTripper }

func (s slow) RoundTrip(request *http.Request) (*http.Response, error) {
	time.Sleep(5 * time.Second)
	return s.RoundTripper.RoundTrip(request)
}

var _ = Describe("A look at a slow cluster", func() {
	It("misses no object if a list expires between two of its pages", func() {
		play(everything(), func(s scene) {
			for i := range 600 {
				s.pod(fmt.Sprint("p", i))
			}
			target := s.ConfigFor("reader")
			expiring := &expiry{RoundTripper: target.Transport, offers: true}
			target.Transport = expiring
			o := once(s, s.clusters(target))
			Expect(expiring.done).To(BeTrue())
			Expect(o.Missing).To(BeEmpty())
			Expect(o.Pods).To(HaveLen(600))
		})
	})

	It("reports a list that expires for good", func() {
		play(everything(), func(s scene) {
			for i := range 600 {
				s.pod(fmt.Sprint("p", i))
			}
			target := s.ConfigFor("reader")
			target.Transport = &expiry{RoundTripper: target.Transport}
			o := once(s, s.clusters(target))
			Expect(o.Missing).To(ConsistOf(HavePrefix("pods: ")))
			Expect(o.PodsUnknown).To(BeTrue())
		})
	})

	It("reads all pages over a slow connection, however long that takes", func() {
		play(everything(), func(s scene) {
			for i := range 2001 {
				s.pod(fmt.Sprint("p", i))
			}
			target := s.ConfigFor("reader")
			target.Transport = slow{target.Transport}
			o := once(s, s.clusters(target))
			Expect(o.Missing).To(BeEmpty())
			Expect(o.Pods).To(HaveLen(2001))
		})
	})
})
