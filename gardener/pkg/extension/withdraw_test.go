// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	bufferv1beta1 "github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	machines "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	autoscalingclient "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/typed/autoscaling/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/pkg/additions"
	"github.com/evenkeel/evenkeel/test/sim"
)

// reserveKind has the seed serve Reserves.
var reserveKind = []sim.Resource{
	{Group: autoscaling.GroupName, Version: "v1alpha1", Name: "reserves", Kind: "Reserve", Namespaced: true, Status: true, Generation: true},
}

const (
	buffers      = `{` + header + `,"pools":[{"name":"shop","excess":0}],"capacityBuffers":true}`
	wrongBuffers = `{` + header + `,"pools":[{"name":"shpo","excess":0}]}`
)

// reserve has the manager create a Reserve for a buffer, or a person one of another name.
func (s *shoot) reserve(ctx context.Context, in, name string, labels map[string]string) {
	GinkgoHelper()
	_, err := machines.NewForConfigOrDie(s.sim.ConfigFor("test")).AutoscalingV1alpha1().Reserves(in).Create(ctx,
		&autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name, Labels: labels}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func (s *shoot) reservesLeft(ctx context.Context) (names []string) {
	GinkgoHelper()
	list, err := machines.NewForConfigOrDie(s.sim.ConfigFor("test")).AutoscalingV1alpha1().Reserves("").List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, r := range list.Items {
		names = append(names, r.Namespace+"/"+r.Name)
	}
	return names
}

func (s *shoot) mayCreateReserves(ctx context.Context) bool {
	GinkgoHelper()
	err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: additions.BuffersName}, &rbacv1.RoleBinding{})
	Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
	return err == nil
}

var _ = Describe("Capacity buffers", func() {
	const all, without = 9, 6
	owned := map[string]string{bufferv1beta1.ReserveLabel: "true"}

	// wanting has a Shoot with a Reserve for buffers, one of a person, and one of another Shoot.
	wanting := func(ctx context.Context) *shoot {
		GinkgoHelper()
		s := newShoot(ctx, buffers)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.added(ctx)).To(Equal(all))
		s.reserve(ctx, namespace, "buffers-shop", owned)
		s.reserve(ctx, namespace, "night", nil)
		s.reserve(ctx, "shoot--project--other", "buffers-shop", owned)
		return s
	}
	others := ConsistOf(namespace+"/night", "shoot--project--other/buffers-shop")

	It("are not served unless they are wanted", func(ctx context.Context) {
		s := newShoot(ctx, valid)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.mayCreateReserves(ctx)).To(BeFalse())
		Expect(s.added(ctx)).To(Equal(without))
	})

	It("keep their Reserves while they are wanted", func(ctx context.Context) {
		s := wanting(ctx)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.reservesLeft(ctx)).To(HaveLen(3))
		s.configure(ctx, wrongBuffers)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.reservesLeft(ctx)).To(HaveLen(3), "law 1: the last accepted configuration counts")
		Expect(s.mayCreateReserves(ctx)).To(BeTrue())
	})

	It("lose the right to create Reserves, then the Reserves, then the other rights", func(ctx context.Context) {
		s := wanting(ctx)
		s.configure(ctx, valid)
		pauses := 0
		s.actuator.pause = func(ctx context.Context) error {
			Expect(s.mayCreateReserves(ctx)).To(BeFalse())
			Expect(s.reservesLeft(ctx)).To(others)
			Expect(s.added(ctx)).To(Equal(all-1), "law 6")
			if pauses++; pauses == 1 {
				s.reserve(ctx, namespace, "buffers-late", owned) // at the last moment
			}
			return nil
		}
		Expect(s.reconcile(ctx)).To(Succeed(), "the library does not reconcile a second time")
		Expect(pauses).To(Equal(2))
		Expect(s.reservesLeft(ctx)).To(others)
		Expect(s.added(ctx)).To(Equal(without))
		s.configure(ctx, buffers)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.added(ctx)).To(Equal(all), "wanted again")
	})

	It("keep the right to create Reserves while the extension is removed, until Evenkeel does not run", func(ctx context.Context) {
		s := wanting(ctx)
		s.install(ctx)
		s.pool(ctx, 1)
		Expect(s.delete(ctx)).To(beLater("machines in reserve 1"))
		Expect(s.mayCreateReserves(ctx)).To(BeTrue())
		s.shrink(ctx)
		Expect(s.delete(ctx)).To(Succeed())
		Expect(s.reservesLeft(ctx)).To(others)
		Expect(s.added(ctx)).To(BeZero())
	})

	It("report that another controller creates Reserves for them", func(ctx context.Context) {
		s := wanting(ctx)
		s.configure(ctx, valid)
		n := 0
		s.actuator.pause = func(ctx context.Context) error {
			n++
			s.reserve(ctx, namespace, fmt.Sprint("again-", n), owned)
			return nil
		}
		Expect(s.reconcile(ctx)).To(MatchError(ContainSubstring("come back")))
		Expect(s.added(ctx)).To(Equal(all - 1))
	})

	It("are no reason to wait where the seed serves no Reserves", func(ctx context.Context) {
		s := newShoot(ctx, valid)
		bare := sim.New(sim.Options{Seed: 1, Resources: sim.Machine})
		DeferCleanup(bare.Close)
		s.actuator.reserves = func(namespace string) (autoscalingclient.ReserveInterface, error) {
			return machines.NewForConfigOrDie(bare.ConfigFor("user")).AutoscalingV1alpha1().Reserves(namespace), nil
		}
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.added(ctx)).To(Equal(without))
	})

	It("keep their rights while Reserves cannot be read", func(ctx context.Context) {
		s := wanting(ctx)
		broken := errors.New("broken")
		s.actuator.reserves = func(string) (autoscalingclient.ReserveInterface, error) { return nil, broken }
		s.configure(ctx, valid)
		Expect(s.reconcile(ctx)).To(MatchError(broken))
		Expect(s.added(ctx)).To(Equal(all-1), "but for the right to create more")
		Expect(s.condition(ctx)).To(HaveField("Status", gardencorev1beta1.ConditionTrue))
	})
})
