// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/demand"
	"github.com/evenkeel/evenkeel/internal/plugin/history"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// aged is a pod that was created some time before noon.
func aged(name string, age time.Duration, changes ...func(*corev1.Pod)) *corev1.Pod {
	return fixture.Pod(name, append([]func(*corev1.Pod){func(p *corev1.Pod) {
		p.UID, p.CreationTimestamp = types.UID(name), metav1.NewTime(noon.Add(-age))
	}}, changes...)...)
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

// ended ended some time before noon, as its containers show.
func ended(before time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodSucceeded
		p.Status.ContainerStatuses = []corev1.ContainerStatus{
			{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(noon.Add(-before))}}},
			{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(noon.Add(-before - time.Minute))}}},
		}
	}
}

// neverStarted failed some time before noon, as its init container shows; its containers never started.
func neverStarted(before time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		ended(before)(p)
		p.Status.Phase, p.Status.InitContainerStatuses = corev1.PodFailed, p.Status.ContainerStatuses
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}
	}
}

// started got a Node some time before noon.
func started(before time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = ptr.To(metav1.NewTime(noon.Add(-before))) }
}

func ownedBy(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Controller: ptr.To(true)}}
	}
}

// event tells of a pod some time before noon.
func event(reason, pod, message string, before time.Duration) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: pod + "." + reason, Namespace: fixture.Namespace},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: fixture.Namespace, Name: pod, UID: types.UID(pod)},
		Reason:         reason, Message: message, EventTime: metav1.NewMicroTime(noon.Add(-before)),
	}
}

func bound(pod, node string, before time.Duration) *corev1.Event {
	return event("Scheduled", pod, "Successfully assigned default/"+pod+" to "+node, before)
}

var _ = DescribeTable("The pods of a cluster",
	func(o history.Objects, want ...demand.Pods) {
		o.Now = noon
		trace, _ := history.Cluster(o)
		Expect(trace).To(HaveExactElements(want))
	},
	Entry("that runs", history.Objects{Pods: []*corev1.Pod{aged("a", time.Hour, on("n"))}}, created(time.Hour, 0)),
	Entry("in the order of creation", history.Objects{Pods: []*corev1.Pod{aged("a", time.Minute), aged("b", time.Hour)}}, created(time.Hour, 0), created(time.Minute, 0)),
	Entry("that has ended", history.Objects{Pods: []*corev1.Pod{aged("a", time.Hour, ended(10*time.Minute))}}, created(time.Hour, 50*time.Minute)),
	Entry("that has ended, as far as can be seen now", history.Objects{Pods: []*corev1.Pod{aged("a", time.Hour, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}}, created(time.Hour, time.Hour)),
	Entry("that has ended because an init container failed", history.Objects{Pods: []*corev1.Pod{aged("a", time.Hour, neverStarted(10*time.Minute))}}, created(time.Hour, 50*time.Minute)),
	Entry("that has ended, and had waited", history.Objects{Pods: []*corev1.Pod{aged("a", time.Hour, ended(10*time.Minute), started(40*time.Minute))}}, created(time.Hour, 30*time.Minute)),
	Entry("that ended at once", history.Objects{Pods: []*corev1.Pod{aged("a", time.Hour, ended(time.Hour))}}, created(time.Hour, time.Second)),
	Entry("that is being deleted", history.Objects{Pods: []*corev1.Pod{aged("a", time.Hour, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(noon.Add(-time.Minute))) })}}, created(time.Hour, 59*time.Minute)),
	Entry("that ends soon", history.Objects{Pods: []*corev1.Pod{aged("a", time.Hour, func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(noon.Add(time.Minute))) })}}, created(time.Hour, 0)),
	Entry("of a DaemonSet", history.Objects{Pods: []*corev1.Pod{aged("a", time.Hour, ownedBy("DaemonSet"))}}),
	Entry("of a Job", history.Objects{Pods: []*corev1.Pod{aged("a", time.Hour, ownedBy("Job"))}}, created(time.Hour, 0)),
	Entry("of the kubelet", history.Objects{Pods: []*corev1.Pod{aged("a", time.Hour, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""} })}}),
	Entry("on some Nodes, and those that wait", history.Objects{Pods: []*corev1.Pod{aged("a", 3*time.Minute, on("n")), aged("b", 2*time.Minute, on("other")), aged("c", time.Minute)}, Nodes: map[string]bool{"n": true}},
		created(3*time.Minute, 0), created(time.Minute, 0)),
	Entry("that is gone, like its sibling on another Node", history.Objects{
		Pods:   []*corev1.Pod{aged("web-1-x", 2*time.Hour, on("other"))},
		Events: []*corev1.Event{event("Killing", "web-1-y", "Stopping container work", 5*time.Minute), bound("web-1-y", "n", 20*time.Minute)}, Nodes: map[string]bool{"n": true},
	}, created(20*time.Minute, 15*time.Minute)),
	Entry("that is gone, and had a container restarted before, whatever the order of events", history.Objects{
		Pods: []*corev1.Pod{aged("web-1-x", 2*time.Hour)},
		Events: []*corev1.Event{event("Killing", "web-1-y", "Stopping container work", 5*time.Minute), bound("web-1-y", "n", 50*time.Minute),
			event("Killing", "web-1-y", "Container work failed liveness probe, will be restarted", 40*time.Minute)},
	}, created(2*time.Hour, 0), created(50*time.Minute, 45*time.Minute)),
	Entry("that is gone, without an event that shows when it was stopped", history.Objects{Pods: []*corev1.Pod{aged("web-1-x", time.Hour)}, Events: []*corev1.Event{bound("web-1-y", "n", 20*time.Minute)}},
		created(time.Hour, 0), created(20*time.Minute, 20*time.Minute)),
	Entry("that is gone, and not like one of the same name in another namespace", history.Objects{
		Pods: []*corev1.Pod{aged("web-1-x", time.Hour), aged("web-1-x", 2*time.Hour, func(p *corev1.Pod) {
			p.Namespace, p.UID = "elsewhere", "elsewhere"
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("7")
		})},
		Events: []*corev1.Event{bound("web-1-y", "n", 20*time.Minute)},
	}, demand.Pods{Created: noon.Add(-2 * time.Hour), CPU: 7000, Count: 1}, created(time.Hour, 0), created(20*time.Minute, 20*time.Minute)),
	Entry("that is gone from another Node", history.Objects{Pods: []*corev1.Pod{aged("web-1-x", time.Hour)}, Events: []*corev1.Event{bound("web-1-y", "other", 20*time.Minute)}, Nodes: map[string]bool{"n": true}}, created(time.Hour, 0)),
	Entry("that is there, and its events", history.Objects{Pods: []*corev1.Pod{aged("web-1-x", time.Hour)}, Events: []*corev1.Event{bound("web-1-x", "n", time.Hour)}}, created(time.Hour, 0)),
	Entry("of other events", history.Objects{Pods: []*corev1.Pod{aged("web-1-x", time.Hour)}, Events: []*corev1.Event{event("Pulled", "web-1-y", "", time.Minute)}}, created(time.Hour, 0)),
)

var _ = DescribeTable("The pods of a cluster with requests that no machine holds", func(cpu, memory string) {
	trace, _ := history.Cluster(history.Objects{Now: noon, Pods: []*corev1.Pod{aged("a", time.Hour, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	})}})
	Expect(trace).To(HaveExactElements(demand.Pods{Created: noon.Add(-time.Hour), CPU: demand.MaxRequest, Memory: demand.MaxRequest, Count: 1}))
},
	Entry("that are large", "10P", "1E"),
	Entry("that are the largest numbers", "9223372036854775807", "9Ei"),
	Entry("that are larger than numbers", "1e30", "1e30"),
)

var _ = Describe("The notes about a cluster", func() {
	It("count pods whose requests are not known", func() {
		_, notes := history.Cluster(history.Objects{Now: noon, Events: []*corev1.Event{bound("job-x", "n", time.Minute)}})
		Expect(notes).To(ContainElement("omitted: 1 deleted pod, because no similar pod shows their requests"))
	})

	It("do not count pods of DaemonSets", func() {
		trace, notes := history.Cluster(history.Objects{Now: noon, Pods: []*corev1.Pod{aged("agent-x", time.Hour, ownedBy("DaemonSet"))}, Events: []*corev1.Event{bound("agent-y", "n", time.Minute)}})
		Expect(trace).To(BeEmpty())
		Expect(notes).To(HaveLen(1), "that events are not kept for long")
	})
})

var _ = Describe("Reading a cluster", func() {
	It("keeps what is needed", func() {
		client := fake.NewClientset(aged("a", time.Hour, on("n"), ended(10*time.Minute), started(40*time.Minute)), bound("a-x", "n", time.Minute), event("Pulled", "a-x", "", 0))
		o, notes, err := history.Read(GinkgoT().Context(), client)
		Expect(err).NotTo(HaveOccurred())
		Expect(notes).To(BeEmpty())
		Expect(o.Events).To(HaveLen(1))
		o.Now = noon
		trace, _ := history.Cluster(o)
		Expect(trace).To(HaveExactElements(created(time.Hour, 30*time.Minute), created(time.Minute, time.Minute)))
	})

	It("keeps all that pods request, and when containers were killed last", func() {
		request := func(cpu string) corev1.ResourceRequirements {
			return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
		}
		killed := event("Killing", "web-1-y", "", 0)
		killed.EventTime, killed.LastTimestamp = metav1.MicroTime{}, metav1.NewTime(noon.Add(-5*time.Minute))
		killed.CreationTimestamp = metav1.NewTime(noon.Add(-10 * time.Minute))
		whole := history.Objects{
			Pods: []*corev1.Pod{
				aged("web-1-x", 4*time.Hour),
				aged("as-a-whole", 3*time.Hour, func(p *corev1.Pod) { p.Spec.Resources = ptr.To(request("3")) }),
				aged("overhead", 2*time.Hour, func(p *corev1.Pod) { p.Spec.Overhead = request("4").Requests }),
				aged("sidecar", time.Hour, func(p *corev1.Pod) {
					p.Spec.InitContainers = []corev1.Container{{Name: "beside", Resources: request("5"), RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
				}),
			},
			Events: []*corev1.Event{bound("web-1-y", "n", 20*time.Minute), killed},
		}
		client := fake.NewClientset(whole.Events[0], whole.Events[1])
		for _, p := range whole.Pods {
			Expect(client.Tracker().Add(p)).To(Succeed())
		}
		o, _, err := history.Read(GinkgoT().Context(), client)
		Expect(err).NotTo(HaveOccurred())
		o.Now, whole.Now = noon, noon
		trace, _ := history.Cluster(o)
		wanted, _ := history.Cluster(whole)
		Expect(trace).To(And(HaveLen(5), Equal(wanted)))
	})

	It("keeps when an init container failed", func() {
		o, _, err := history.Read(GinkgoT().Context(), fake.NewClientset(aged("a", time.Hour, neverStarted(10*time.Minute))))
		Expect(err).NotTo(HaveOccurred())
		o.Now = noon
		trace, _ := history.Cluster(o)
		Expect(trace).To(HaveExactElements(created(time.Hour, 50*time.Minute)))
	})

	It("does without events if there is no right to them", func() {
		client := fake.NewClientset(aged("a", time.Hour))
		client.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("events"), "", nil)
		})
		o, notes, err := history.Read(GinkgoT().Context(), client)
		Expect(err).NotTo(HaveOccurred())
		Expect(o.Pods).To(HaveLen(1))
		Expect(notes).To(ConsistOf(ContainSubstring("no right to list events")))
	})

	It("is an error without pods", func() {
		client := fake.NewClientset()
		client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", nil)
		})
		_, _, err := history.Read(GinkgoT().Context(), client)
		Expect(err).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	})
})

// trip is a connection.
type trip func(*http.Request) (*http.Response, error)

func (t trip) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

var _ = It("Each page has a time limit of its own, so that a large cluster is read over a slow connection", func() {
	var limits []time.Time
	running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, next := "EventList", ""
		if strings.HasSuffix(r.URL.Path, "/pods") {
			kind = "PodList"
		}
		if r.URL.Query().Get("continue") == "" && kind == "PodList" {
			next = "more"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1","metadata":{"resourceVersion":"1","continue":%q},"items":[]}`, kind, next)
	}))
	DeferCleanup(running.Close)
	config := &rest.Config{Host: running.URL}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return trip(func(r *http.Request) (*http.Response, error) {
			if limit, set := r.Context().Deadline(); set && strings.HasSuffix(r.URL.Path, "/pods") {
				limits = append(limits, limit)
			}
			return inner.RoundTrip(r)
		})
	})
	_, _, err := history.Read(GinkgoT().Context(), kubernetes.NewForConfigOrDie(config))
	Expect(err).NotTo(HaveOccurred())
	Expect(limits).To(HaveLen(2))
	Expect(limits[1]).To(BeTemporally(">", limits[0]))
})
