// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// grace is how long a node of these specs may miss its heartbeats, of which there is one a second.
const grace = 4 * time.Second

var _ = Describe("a whole cluster", Ordered, func() {
	var (
		cluster *Cluster
		client  kubernetes.Interface
	)
	BeforeAll(func(ctx SpecContext) {
		cluster = startCluster(ctx, Options{ExtraArgs: map[string][]string{
			ControllerManager: {"--node-monitor-grace-period=" + grace.String(), "--node-monitor-period=500ms"},
			Kwok:              {"--node-lease-duration-seconds=4"},
		}})
		client = clientOf(cluster)
	})

	ready := func(ctx context.Context, node string) (corev1.ConditionStatus, error) {
		n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status, nil
			}
		}
		return "", nil
	}
	becomes := func(ctx context.Context, node string, status corev1.ConditionStatus) {
		GinkgoHelper()
		Eventually(ready).WithContext(ctx).WithArguments(node).WithTimeout(long).Should(Equal(status))
	}
	stays := func(ctx context.Context, node string, status corev1.ConditionStatus) {
		GinkgoHelper()
		Consistently(ready).WithContext(ctx).WithArguments(node).WithTimeout(2 * grace).Should(Equal(status))
	}
	annotate := func(ctx context.Context, node, value string) {
		GinkgoHelper()
		patch := []byte(`{"metadata":{"annotations":{"kwok.x-k8s.io/node":` + value + `}}}`)
		_, err := client.CoreV1().Nodes().Patch(ctx, node, apitypes.MergePatchType, patch, metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	newNode := func(ctx context.Context) string {
		GinkgoHelper()
		size := corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("5Gi"), "pods": resource.MustParse("10")}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: uniqueName(), Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
			Status:     corev1.NodeStatus{Capacity: size, Allocatable: size},
		}
		node, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{})).To(Succeed())
		})
		becomes(ctx, node.Name, corev1.ConditionTrue)
		return node.Name
	}
	newPod := func(ctx context.Context, node string) string {
		GinkgoHelper()
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: uniqueName()},
			Spec: corev1.PodSpec{
				NodeSelector: map[string]string{}, Containers: []corev1.Container{{Name: "c", Image: "i"}},
				Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
						{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
					}}},
				}}},
			},
		}
		pod, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		return pod.Name
	}
	podIs := func(ctx context.Context, pod string, matcher types.GomegaMatcher) {
		GinkgoHelper()
		Eventually(func() (*corev1.Pod, error) {
			return client.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
		}).WithTimeout(long).Should(matcher)
	}

	It("listens on loopback and nowhere else", func() {
		for _, process := range cluster.Processes() {
			addresses := listening(process.PID())
			Expect(addresses).NotTo(BeEmpty(), process.Name())
			Expect(addresses).To(HaveEach(HavePrefix("127.0.0.1:")), process.Name())
		}
	})

	It("gives its components the identities they have in a real one", func(ctx SpecContext) {
		for component, user := range map[string]string{ControllerManager: "system:kube-controller-manager", Scheduler: "system:kube-scheduler"} {
			Expect(cluster.whoami(ctx, component)).To(Equal(user))
		}
	})

	It("keeps a fake node Ready and as big as it was made", func(ctx SpecContext) {
		name := newNode(ctx)
		stays(ctx, name, corev1.ConditionTrue)
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(node.Status.Capacity.Cpu().String()).To(Equal("3"))
		Expect(node.Status.Allocatable.Memory().String()).To(Equal("5Gi"))
		Expect(node.Spec.Taints).To(BeEmpty())
	})

	It("schedules and runs a pod, and lets it go", func(ctx SpecContext) {
		node := newNode(ctx)
		pod := newPod(ctx, node)
		podIs(ctx, pod, And(HaveField("Spec.NodeName", node), HaveField("Status.Phase", corev1.PodRunning)))
		Expect(client.CoreV1().Pods("default").Delete(ctx, pod, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() error {
			_, err := client.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
			return err
		}).WithTimeout(long).Should(MatchError(ContainSubstring("not found")))
	})

	It("lets a node die that is fake no more, with its pods, and live again", func(ctx SpecContext) {
		node := newNode(ctx)
		pod := newPod(ctx, node)
		podIs(ctx, pod, HaveField("Status.Phase", corev1.PodRunning))
		annotate(ctx, node, `null`)
		becomes(ctx, node, corev1.ConditionUnknown)
		Expect(client.CoreV1().Pods("default").Delete(ctx, pod, metav1.DeleteOptions{})).To(Succeed())
		stays(ctx, node, corev1.ConditionUnknown)
		podIs(ctx, pod, HaveField("DeletionTimestamp", Not(BeNil())))

		annotate(ctx, node, `"fake"`)
		becomes(ctx, node, corev1.ConditionTrue)
		stays(ctx, node, corev1.ConditionTrue)
		annotate(ctx, node, `"dead"`)
		becomes(ctx, node, corev1.ConditionUnknown)
	})

	It("keeps nodes Ready when kwok is killed and comes back in time", func(ctx SpecContext) {
		node := newNode(ctx)
		Expect(cluster.Process(Kwok).Kill()).To(Succeed())
		Expect(cluster.Process(Kwok).Start()).To(Succeed())
		stays(ctx, node, corev1.ConditionTrue)
	})

	It("loses all nodes while kwok is paused, and gets them back", func(ctx SpecContext) {
		node := newNode(ctx)
		Expect(cluster.Process(Kwok).Pause()).To(Succeed())
		becomes(ctx, node, corev1.ConditionUnknown)
		Expect(cluster.Process(Kwok).Resume()).To(Succeed())
		becomes(ctx, node, corev1.ConditionTrue)
	})

	It("binds nothing while the scheduler is paused", func(ctx SpecContext) {
		node := newNode(ctx)
		scheduler := cluster.Process(Scheduler)
		Expect(scheduler.Pause()).To(Succeed())
		DeferCleanup(scheduler.Resume)
		pod := newPod(ctx, node)
		Consistently(func() (*corev1.Pod, error) {
			return client.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
		}).WithTimeout(2 * time.Second).Should(HaveField("Spec.NodeName", BeEmpty()))
		Expect(scheduler.Resume()).To(Succeed())
		podIs(ctx, pod, HaveField("Spec.NodeName", node))
	})
})
