// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/record"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	"github.com/evenkeel/evenkeel/pkg/controller/reserves"
	"github.com/evenkeel/evenkeel/test/fixture"
)

const plainReserve = `
apiVersion: autoscaling.evenkeel.dev/v1alpha1
kind: Reserve
metadata: {name: queue, namespace: default}
spec:
  pools: {names: [reserved-z1, reserved-z2]}
`

// runReserves runs the controller until the spec ends.
func runReserves(config *rest.Config) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	ours := versioned.NewForConfigOrDie(config)
	machines := stores.New(ours, "default")
	objects := externalversions.NewSharedInformerFactoryWithOptions(ours, 0, externalversions.WithNamespace("default"))
	c, err := reserves.New(reserves.Clients{Reserves: ours.AutoscalingV1alpha1(), Machines: ours.MachineV1alpha1()},
		reserves.Informers{Reserves: objects.Autoscaling().V1alpha1().Reserves(), Machines: machines}, &record.FakeRecorder{}, reserves.Options{})
	Expect(err).NotTo(HaveOccurred())
	machines.Start(ctx)
	objects.StartWithContext(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	DeferCleanup(func() {
		cancel()
		Eventually(ended, 5*time.Second).Should(BeClosed())
		machines.Shutdown()
		objects.Shutdown()
	})
}

// scales is the client that the controller of HorizontalPodAutoscalers uses.
func scales() scale.ScalesGetter {
	GinkgoHelper()
	client := discovery.NewDiscoveryClientForConfigOrDie(cluster.Config())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	getter, err := scale.NewForConfig(cluster.Config(), mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client))
	Expect(err).NotTo(HaveOccurred())
	return getter
}

var _ = Describe("A Reserve", func() {
	It("is refused with what to write, and explained", func() {
		for change, says := range map[string]string{
			"pools: {names: [reserved-z1, reserved-z2]}": "",
			"pools: {}":                           "set names, selector or workerPools",
			"pools: {names: [a]}\n  amount: lots": "write a count (2), a percentage of replicas (5%)",
			"pools: {names: [a]}\n  schedules: [{name: a, start: '0 7 * *', duration: 8h, replicas: 1}]": "write five fields",
			"pools: {names: [a]}\n  schedules: [{name: a, start: '0 7 * * *', replicas: 1}]":             "set either end or duration",
		} {
			out, err := kubectl(strings.Replace(plainReserve, "pools: {names: [reserved-z1, reserved-z2]}", change, 1), "create", "--dry-run=server", "-f", "-")
			if says == "" {
				Expect(err).NotTo(HaveOccurred(), out)
			} else {
				Expect(err).To(HaveOccurred())
				Expect(out).To(ContainSubstring(says))
			}
		}
		out, err := kubectl("", "explain", "reserve.spec.schedules")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(ContainSubstring("0 7 * * MON-FRI"))
	})

	It("is scaled by the client of autoscalers and by kubectl, and its controller works as its service account", func(ctx context.Context) {
		ours := versioned.NewForConfigOrDie(cluster.Config())
		deployments := ours.MachineV1alpha1().MachineDeployments("default")
		for _, name := range []string{"reserved-z1", "reserved-z2"} {
			stock := fixture.MachineDeployment(name, 0)
			_, err := deployments.Create(ctx, &machine.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
				Spec: machine.MachineDeploymentSpec{StockMachineDeploymentSpec: stock.Spec}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func(ctx context.Context) {
				Expect(deployments.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
			})
		}
		out, err := kubectl(plainReserve, "create", "-f", "-")
		Expect(err).NotTo(HaveOccurred(), out)
		runReserves(alone(ctx, "reserves"))
		requested := func(ctx context.Context) (all []string) {
			for _, name := range []string{"reserved-z1", "reserved-z2"} {
				d, err := deployments.Get(ctx, name, metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				all = append(all, d.Annotations[machine.RequestedExcessAnnotation])
			}
			return all
		}
		queue := func(ctx context.Context) (*autoscalingv1.Scale, error) {
			return scales().Scales("default").Get(ctx, v1alpha1.Resource("reserves"), "queue", metav1.GetOptions{})
		}
		Eventually(ctx, func(ctx context.Context) (string, error) {
			s, err := queue(ctx)
			if err != nil {
				return "", err
			}
			return s.Status.Selector, nil
		}, time.Minute).Should(HavePrefix("reserve.autoscaling.evenkeel.dev/uid="))
		s, err := queue(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(s.Spec.Replicas).To(BeZero())
		s.Spec.Replicas = 5
		_, err = scales().Scales("default").Update(ctx, v1alpha1.Resource("reserves"), s, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, requested, time.Minute).Should(Equal([]string{"queue=3", "queue=2"}))
		Eventually(ctx, func(ctx context.Context) (string, error) {
			r, err := ours.AutoscalingV1alpha1().Reserves("default").Get(ctx, "queue", metav1.GetOptions{})
			if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionReady); err == nil && c != nil {
				return c.Reason, nil
			}
			return "", err
		}, time.Minute).Should(Equal("Growing"))
		out, err = kubectl("", "get", "rsv", "queue")
		Expect(err).NotTo(HaveOccurred(), out)
		Expect(out).To(MatchRegexp(`(?s)DESIRED +READY-MACHINES +READY +REASON.*queue +5 +0 +False +Growing`))
		out, err = kubectl("", "scale", "reserve", "queue", "--replicas=0")
		Expect(err).NotTo(HaveOccurred(), out)
		Eventually(ctx, requested, time.Minute).Should(Equal([]string{"", ""}))
		out, err = kubectl("", "delete", "reserve", "queue")
		Expect(err).NotTo(HaveOccurred(), out)
	})
})
