// SPDX-License-Identifier: Apache-2.0

package real

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
	"github.com/evenkeel/evenkeel/test/machines/registry"
)

// web is the name of an image of 100 MB with this tag, which no other spec uses.
func web(tag string) string { return "127.0.0.1:5000/100mb/web:" + tag }

// asks has the pool's machines in reserve prepared.
func (p pool) asks(ctx context.Context, text string) {
	GinkgoHelper()
	p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, machine.PrepareAnnotation, text))
}

// condition is ReserveReady, as reason and message, with the number of machines that are ready.
func (p pool) condition(ctx context.Context) (string, error) {
	d, err := p.ours.MachineV1alpha1().MachineDeployments(namespace).Get(ctx, p.name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	for _, c := range d.Status.Conditions {
		if c.Type == machine.ReserveReady {
			return fmt.Sprintf("%d %s %s", d.Status.ReadyExcessReplicas, c.Reason, c.Message), nil
		}
	}
	return "", nil
}

// preparers are the pods that pull images for the pool: their namespace, their Node, and whether they are ready.
func (p pool) preparers(ctx context.Context) (all []string, err error) {
	nodes, err := p.nodes(ctx)
	if err != nil {
		return nil, err
	}
	list, err := p.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: plan.Label})
	if err != nil {
		return nil, err
	}
	for _, pod := range list.Items {
		if _, mine := nodes[pod.Spec.NodeName]; !mine {
			continue
		}
		words := []string{pod.Namespace, pod.Spec.NodeName}
		if isReady(&pod) {
			words = append(words, "ready")
		}
		all = append(all, strings.Join(words, " "))
	}
	return all, nil
}

// restricted is a namespace that enforces the restricted Pod Security Standard.
func restricted(ctx context.Context, name string) {
	GinkgoHelper()
	_, err := kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error {
		_, err := kube.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	}).WithContext(ctx).Should(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(kube.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
}

var _ = Describe("A prepared reserve", func() {
	It("has the images of a workload, follows them, and starts its pods at once", func(ctx context.Context) {
		p := newPool(ctx, "prepared", 0, 1, small)
		p.rests(ctx, 0, 1)
		p.work(ctx, 0, web("v1"))
		p.asks(ctx, `[{namespace: default, workloads: [Deployment/prepared]}]`)
		Eventually(p.preparers).WithContext(ctx).Should(ConsistOf("default " + p.node(ctx, "closed") + " ready"))
		Eventually(p.condition).WithContext(ctx).Should(HavePrefix("1 Complete"))

		By("updating the workload")
		suffer(ctx, "registry: {bandwidth: 20M}") // five seconds for an image
		p.setImage(ctx, web("v2"))
		Eventually(p.condition).WithContext(ctx).Should(HavePrefix("0 Preparing"))
		Eventually(p.condition).WithContext(ctx).Should(HavePrefix("1 Complete"))

		By("needing the machine")
		reserve := p.node(ctx, "closed")
		suffer(ctx, "registry: {down: true}")
		begun := time.Now()
		p.scaleWork(ctx, 1)
		Eventually(p.running).WithContext(ctx).Should(values(ConsistOf(reserve)), func() string { return p.states(ctx) })
		AddReportEntry("created to ready", time.Since(begun))
		Eventually(p.preparers).WithContext(ctx).ShouldNot(ContainElement(HavePrefix("default " + reserve)))
	})

	It("says why images cannot be pulled, and is released all the same", func(ctx context.Context) {
		restricted(ctx, "shop")
		p := newPool(ctx, "unprepared", 0, 1, small)
		p.rests(ctx, 0, 1)
		p.asks(ctx, `[{namespace: shop, images: ["127.0.0.1:5000/none/such:1"]}]`)
		Eventually(p.condition).WithContext(ctx).Should(And(HavePrefix("0 PreparationFailed"), ContainSubstring("ImageNotFound")))
		p.asks(ctx, `[{namespace: nowhere, images: ["`+web("v3")+`"]}]`)
		Eventually(p.condition).WithContext(ctx).Should(And(HavePrefix("0 PreparationFailed"), ContainSubstring(`namespaces "nowhere" not found`)))
		suffer(ctx, "registry: {down: true}")
		p.asks(ctx, `[{namespace: shop, images: ["`+web("v3")+`"]}]`)
		Eventually(p.condition).WithContext(ctx).Should(And(HavePrefix("0 PreparationFailed"), ContainSubstring("PullFailed")))
		Eventually(p.preparers).WithContext(ctx).Should(ConsistOf("shop " + p.node(ctx, "closed")))
		p.patch(ctx, `{"spec":{"replicas":1}}`)
		p.rests(ctx, 1, 1)
		suffer(ctx, "{}")
		Eventually(p.condition).WithContext(ctx).Should(HavePrefix("1 Complete"))
		p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, machine.PrepareAnnotation))
		Eventually(p.preparers).WithContext(ctx).Should(BeEmpty())
	})

	It("uses the Secrets of the namespace that asks, and lets no other namespace use what they pull", func(ctx context.Context) {
		const private = "127.0.0.1:5000/1mb/private/web:v1"
		restricted(ctx, "owner")
		p := newPool(ctx, "private", 0, 1, small)
		p.rests(ctx, 0, 1)
		p.asks(ctx, `[{namespace: owner, images: ["`+private+`"], imagePullSecrets: [key]}]`)
		Eventually(p.condition).WithContext(ctx).Should(And(HavePrefix("0 PreparationFailed"), ContainSubstring("NoAccess")))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Type: corev1.SecretTypeDockerConfigJson, StringData: map[string]string{
			corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{"127.0.0.1:5000":{"username":%q,"password":%q}}}`, registry.User, registry.Password),
		}}
		_, err := kube.CoreV1().Secrets("owner").Create(ctx, secret, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(p.condition).WithContext(ctx).Should(HavePrefix("1 Complete"))

		By("running a pod of another namespace there")
		reserve := p.node(ctx, "closed")
		p.patch(ctx, `{"spec":{"replicas":1}}`)
		p.rests(ctx, 1, 1)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "thief"}, Spec: p.template(private, "10m").Spec}
		pod.Spec.NodeName = reserve
		_, err = kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(kube.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
		})
		Eventually(func() (string, error) {
			is, err := kube.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil || len(is.Status.ContainerStatuses) == 0 || is.Status.ContainerStatuses[0].State.Waiting == nil {
				return "", err
			}
			return is.Status.ContainerStatuses[0].State.Waiting.Message, nil
		}).WithContext(ctx).Should(ContainSubstring("no basic auth credentials"))
	})

	It("says that a registry is too slow, and is released in the middle of a pull, after which its pod starts", func(ctx context.Context) {
		p := newPool(ctx, "slow", 0, 1, small)
		p.rests(ctx, 0, 1)
		p.work(ctx, 0, web("v4"))
		suffer(ctx, "registry: {bandwidth: 1M}")
		p.asks(ctx, `[{namespace: default, workloads: [Deployment/slow]}]`)
		Eventually(p.condition).WithContext(ctx).Should(And(HavePrefix("0 PreparationFailed"), ContainSubstring("TooSlow")))
		reserve := p.node(ctx, "closed")
		Expect(p.preparers(ctx)).To(ConsistOf("default " + reserve))
		p.scaleWork(ctx, 1)
		Eventually(p.nodes).WithContext(ctx).Should(HaveKeyWithValue(reserve, "open"))
		Eventually(p.preparers).WithContext(ctx).ShouldNot(ContainElement(HavePrefix("default " + reserve)))
		suffer(ctx, "{}")
		Eventually(p.running).WithContext(ctx).Should(values(ConsistOf(reserve)), func() string { return p.states(ctx) })
	})

	It("says that a disk is full, and is released all the same", func(ctx context.Context) {
		p := newPool(ctx, "full", 0, 1, `"capacity":{"cpu":"1","memory":"512Mi","pods":"30","ephemeral-storage":"400Mi"}`)
		p.rests(ctx, 0, 1)
		p.asks(ctx, `[{namespace: default, images: ["127.0.0.1:5000/600mb/web:full"]}]`)
		Eventually(p.condition).WithContext(ctx).Should(And(HavePrefix("0 PreparationFailed"), ContainSubstring("NoSpace")), func() string { return p.states(ctx) })
		p.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, machine.PrepareAnnotation))
		Eventually(p.condition).WithContext(ctx).Should(HavePrefix("1 Complete"))
		p.work(ctx, 1, tiny)
		Eventually(p.running).WithContext(ctx).Should(HaveLen(1), func() string { return p.states(ctx) })
	})

	It("keeps the images that are asked for when a disk gets full, and leaves the others to the kubelet", func(ctx context.Context) {
		p := newPool(ctx, "pressed", 0, 1, `"capacity":{"cpu":"1","memory":"512Mi","pods":"30","ephemeral-storage":"700Mi"}`)
		p.rests(ctx, 0, 1)
		image := func(i int) string { return fmt.Sprintf("127.0.0.1:5000/50mb/web:%d", i) } // takes 50 MB, and as much unpacked
		for i := range 9 {
			p.asks(ctx, `[{namespace: default, images: ["`+image(i)+`"]}]`)
			// The kubelet may end the pod that pulls before it removes other images, and another one comes after five minutes.
			Eventually(p.images).WithContext(ctx).WithTimeout(4*soon).Should(ContainElement(image(i)), func() string { said, _ := p.condition(ctx); return said })
			Eventually(p.condition).WithContext(ctx).Should(HavePrefix("1 Complete"))
		}
		Eventually(p.images).WithContext(ctx).Should(And(ContainElement(image(8)), Not(ContainElement(image(0)))))
		p.rests(ctx, 0, 1)
	}, NodeTimeout(20*time.Minute))
})

// images are the names of those on the pool's Nodes, as these report them.
func (p pool) images(ctx context.Context) (all []string, err error) {
	nodes, err := p.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: corev1.LabelTopologyZone + "=" + p.name})
	if err != nil {
		return nil, err
	}
	for _, n := range nodes.Items {
		for _, image := range n.Status.Images {
			all = append(all, image.Names...)
		}
	}
	return all, nil
}
