// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rounds is how many pods of the neighbour have been given a machine.
var rounds int

// measure has pods of the neighbour bound in turns, by hand and by instant release, until enough time has passed.
func measure(ctx context.Context, long time.Duration) (byHand, released time.Duration) {
	GinkgoHelper()
	var hand, ours []time.Duration
	for begun := time.Now(); time.Since(begun) < long || len(ours) < 3; {
		rounds++
		name := fmt.Sprintf("floor-%d", rounds)
		createFloorNode(ctx, name)
		hand = append(hand, bind(ctx, name, floor, open(name)))
		awaitReserve(ctx)
		ours = append(ours, bind(ctx, fmt.Sprintf("neighbour-%d", rounds), pool, nil))
	}
	AddReportEntry("all of them, by hand and with instant release", fmt.Sprint(hand, ours))
	return median(hand), median(ours)
}

var _ = Describe("A hostile user of one namespace", Ordered, func() {
	BeforeAll(func(ctx context.Context) { createPool(ctx) })

	It("who deploys 60 million pods that no machine holds, and then as many as possible, does not affect others", func(ctx context.Context) {
		Expect(deploy(ctx, "millions", 60_000_000)).To(Succeed())
		Expect(deploy(ctx, "most", 1<<31-1)).To(Succeed())
		byHand, released := measure(ctx, 10*time.Second)
		report("beside 2^31-1 pods", byHand, released)
		expectHalf("beside 2^31-1 pods")
		expectNothingForStrangers(ctx)
		endWith(ctx, "millions", "most")
	})

	It("who has as many images prepared as possible, and forges the pods that pull them, does not affect others", func(ctx context.Context) {
		expectApart(ctx)
		expectNothingForStrangers(ctx)
	})

	It("who has 10,000 pods start in groups, each with a claim to a device, does not affect others", func(ctx context.Context) {
		before := pids()
		const groups = 10_000
		regroup(ctx, groups)
		byHand, released := measure(ctx, 10*time.Second)
		report("beside 10,000 groups and claims", byHand, released)
		expectHalf("beside 10,000 groups and claims")
		Expect(pids()).To(Equal(before), "none has died")
		expectNothingForStrangers(ctx)
		disband(ctx, groups)
	})

	It("who federates thousands of the largest objects does not affect others", func(ctx context.Context) {
		before := pids()
		Expect(federate(ctx, 2000)).To(Succeed())
		begun := time.Now()
		expectFederated(ctx, "neighbour")
		AddReportEntry("the neighbour's autoscaler, created after 2,000 objects, is there after", time.Since(begun).Round(time.Millisecond).String())
		expectHalf("beside 2,000 federated objects")
		Expect(pids()).To(Equal(before), "none has died")
	})

	It("who creates the largest legal objects of every kind does not affect others", func(ctx context.Context) {
		Expect(endless(ctx)).To(Succeed())
		before := pids()
		attacking := attack(ctx)
		DeferCleanup(attacking.cancel)
		byHand, released := measure(ctx, *duration)
		created := attacking.stop()
		AddReportEntry("objects created", created)
		report("beside the largest objects", byHand, released)
		expectHalf("beside the largest objects")
		Expect(created).To(BeNumerically(">", 100), "an attack that is none")
		Expect(pids()).To(Equal(before), "none has died")
		expectNothingForStrangers(ctx)
	})

	It("leaves data that a restarted process can read", func(ctx context.Context) {
		for _, name := range []string{manager, balancer, hub} {
			Expect(cluster.Process(name).Restart()).To(Succeed())
		}
		byHand, released := measure(ctx, 0)
		report("after a restart", byHand, released)
		expectFederated(ctx, "neighbour-again")
		expectHalf("after a restart")
		expectNothingForStrangers(ctx)
	})
})

// report judges the medians.
func report(when string, byHand, released time.Duration) {
	GinkgoHelper()
	AddReportEntry(when, fmt.Sprintf("median until bound: %v with the taint taken off by hand, %v with instant release", byHand.Round(time.Millisecond), released.Round(time.Millisecond)))
	Expect(released).To(BeNumerically("<=", 4*byHand), "%s: %v by hand", when, byHand)
}

func pids() map[string]int {
	all := map[string]int{}
	for _, name := range []string{manager, balancer, driver, hub} {
		all[name] = cluster.Process(name).PID()
	}
	return all
}

// expectNothingForStrangers looks at replicas, machines and what was said of releases.
func expectNothingForStrangers(ctx context.Context) {
	GinkgoHelper()
	Expect(deployment(ctx).Spec.Replicas).To(BeEquivalentTo(1+rounds), "one for each pod of the neighbour")
	machines, err := ours.MachineV1alpha1().Machines(namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(len(machines.Items)).To(BeNumerically("<=", 1+rounds+spares))
	events, err := kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=ReserveNeeded"})
	Expect(err).NotTo(HaveOccurred())
	for _, e := range events.Items {
		Expect(e.Message).NotTo(ContainSubstring(hostile+"/"), strings.TrimSpace(e.Message))
	}
}
