// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

var _ = Describe("A server", func() {
	It("takes protobuf for built-in kinds", func() {
		play(sim.Options{}, func(s scene) {
			config := s.Config()
			config.ContentType = "application/vnd.kubernetes.protobuf"
			pods := kubernetes.NewForConfigOrDie(config).CoreV1().Pods(fixture.Namespace)
			pod, err := pods.Create(s, fixture.Pod("one"), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(pod.Spec).To(Equal(fixture.Pod("one").Spec))
			gone := metav1.Preconditions{UID: ptr.To(pod.UID + "x")}
			Expect(pods.Delete(s, "one", metav1.DeleteOptions{Preconditions: &gone})).To(Satisfy(apierrors.IsConflict))
			Expect(pods.Delete(s, "one", metav1.DeleteOptions{})).To(Succeed())
		})
	})

	It("keeps managed fields from the first apply on, unless they are kept from creation on", func() {
		for _, all := range []bool{false, true} {
			play(sim.Options{ManagedFields: all}, func(s scene) {
				maps := kubernetes.NewForConfigOrDie(s.Config()).CoreV1().ConfigMaps(fixture.Namespace)
				one, err := maps.Create(s, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Data: map[string]string{"a": "1"}}, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(one.ManagedFields != nil).To(Equal(all))
				one, err = maps.Apply(s, corev1apply.ConfigMap("one", fixture.Namespace).WithData(map[string]string{"b": "2"}), metav1.ApplyOptions{FieldManager: "x"})
				Expect(err).NotTo(HaveOccurred())
				Expect(one.Data).To(Equal(map[string]string{"a": "1", "b": "2"}))
				Expect(one.ManagedFields).To(HaveLen(2))
				Expect(one.ManagedFields[0].Manager).To(Equal("x"))
				before := "before-first-apply"
				if all {
					before = "anonymous"
				}
				Expect(one.ManagedFields[1].Manager).To(Equal(before))
			})
		}
	})

	It("prunes what a schema does not know", func() {
		resources := []sim.Resource{sim.Machine[2]}
		Expect(resources[0].Kind).To(Equal("MachineDeployment"))
		resources[0].Known = &sim.Known{Spec: []string{"replicas"}, Status: []string{"replicas"}}
		play(sim.Options{Resources: resources}, func(s scene) {
			all := dynamic.NewForConfigOrDie(s.Config()).Resource(deployments).Namespace(fixture.Namespace)
			_, err := s.machine.MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(s, fixture.MachineDeployment("pool", 3), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			body := []byte(`{"spec":{"replicas":4,"excessReplicas":2},"status":{"replicas":1}}`)
			d, err := all.Patch(s, "pool", "application/merge-patch+json", body, metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Object).To(HaveKeyWithValue("spec", Equal(map[string]any{"replicas": int64(4)})))
			body = []byte(`{"status":{"replicas":1,"excessReplicas":2}}`)
			d, err = all.Patch(s, "pool", "application/merge-patch+json", body, metav1.PatchOptions{}, "status")
			Expect(err).NotTo(HaveOccurred())
			Expect(d.Object).To(HaveKeyWithValue("status", Equal(map[string]any{"replicas": int64(1)})))
			Expect(d.GetGeneration()).To(BeEquivalentTo(2))
		})
	})

	It("keeps unknown fields of custom resources otherwise", func() {
		play(sim.Options{}, func(s scene) {
			d, err := s.machine.MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(s, fixture.MachineDeployment("pool", 3), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			excess := []byte(`{"spec":{"excessReplicas":2}}`)
			_, err = s.machine.MachineV1alpha1().MachineDeployments(fixture.Namespace).Patch(s, "pool", "application/merge-patch+json", excess, metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(s.Get(deployments, fixture.Namespace, "pool").Object).To(HaveKeyWithValue("spec", HaveKeyWithValue("excessReplicas", int64(2))))
			d.ResourceVersion = s.Version()
			_, err = s.machine.MachineV1alpha1().MachineDeployments(fixture.Namespace).Update(s, d, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(s.Get(deployments, fixture.Namespace, "pool").Object).To(HaveKeyWithValue("spec", Not(HaveKey("excessReplicas"))), "a typed PUT wipes them, as ever")
		})
	})

	It("shows built-in workloads through their scale, selector included", func() {
		play(sim.Options{Resources: sim.Workloads}, func(s scene) {
			apps := kubernetes.NewForConfigOrDie(s.Config()).AppsV1().Deployments(fixture.Namespace)
			labels := map[string]string{"app": "web"}
			_, err := apps.Create(s, &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "web"},
				Spec: appsv1.DeploymentSpec{
					Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
				},
			}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			scale, err := apps.GetScale(s, "web", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(scale.Status.Selector).To(Equal("app=web"))
			scale.Spec.Replicas = 5
			_, err = apps.UpdateScale(s, "web", scale, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			d, err := apps.Get(s, "web", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(*d.Spec.Replicas).To(BeEquivalentTo(5))
			Expect(d.Generation).To(BeEquivalentTo(2))
		})
	})

	It("returns copies, so that no caller can change what is stored", func() {
		play(sim.Options{}, func(s scene) {
			s.create("one")
			s.Get(machines, fixture.Namespace, "one").Object["spec"] = "broken"
			s.Objects(machines)[0].SetName("broken")
			Expect(s.Get(machines, fixture.Namespace, "one").Object).To(HaveKeyWithValue("spec", Not(Equal("broken"))))
			Expect(s.Objects(machines)[0].GetName()).To(Equal("one"))
			Expect(s.Get(machines, fixture.Namespace, "two")).To(BeNil())
		})
	})

	It("stamps objects with its own clock", func() {
		then := time.Date(1969, 7, 20, 20, 17, 40, 5, time.UTC)
		play(sim.Options{Now: func() time.Time { return then }}, func(s scene) {
			Expect(s.create("one").CreationTimestamp.UTC()).To(Equal(then.Truncate(time.Second)))
		})
	})
})

var _ = Describe("Garbage", func() {
	It("is collected when all owners are gone, whatever their names", func() {
		play(sim.Options{}, func(s scene) {
			ctx, cancel := context.WithCancel(s)
			defer cancel()
			go s.CollectGarbage(ctx, time.Second)
			owner, other := s.create("owner"), s.create("other")
			owned := func(name string, by ...*metav1.OwnerReference) {
				m := fixture.Machine(name)
				for _, reference := range by {
					m.OwnerReferences = append(m.OwnerReferences, *reference)
				}
				_, err := s.machine.MachineV1alpha1().Machines(fixture.Namespace).Create(s, m, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			kind := machines.GroupVersion().WithKind("Machine")
			byOwner, byOther := metav1.NewControllerRef(owner, kind), metav1.NewControllerRef(other, kind)
			byOther.Controller = nil
			owned("child", byOwner)
			child, err := s.machine.MachineV1alpha1().Machines(fixture.Namespace).Get(s, "child", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			owned("grandchild", metav1.NewControllerRef(child, kind))
			owned("shared", byOwner, byOther)
			time.Sleep(time.Minute)
			Expect(s.Objects(machines)).To(HaveLen(5))
			s.delete("owner")
			s.create("owner")
			time.Sleep(time.Minute)
			Expect(s.exists("child")).To(BeFalse())
			Expect(s.exists("grandchild")).To(BeFalse())
			Expect(s.exists("shared")).To(BeTrue())
			Expect(s.exists("owner")).To(BeTrue())
			Expect(s.Writes()).To(ContainElement(And(HaveField("User", sim.Collector), HaveField("Name", "child"))))
		})
	})
})
