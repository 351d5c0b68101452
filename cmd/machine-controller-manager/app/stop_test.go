// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"strings"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	machinev1alpha1 "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/front"
)

// endsWithin is what a process may take that is told to stop: a pod of a Gardener has five seconds.
const endsWithin = 3 * time.Second

// twoClusters are simulated clusters behind fronts, and the flags to connect to them.
func twoClusters() (control *sim.Server, fronts [2]*front.Front, flags []string) {
	control, target := sim.New(sim.Options{}), sim.New(sim.Options{})
	fronts = [2]*front.Front{running.InFront(control, "control"), running.InFront(target, "target")}
	return control, fronts, []string{"--control-kubeconfig=" + fronts[0].Kubeconfig(), "--target-kubeconfig=" + fronts[1].Kubeconfig()}
}

// leases and served are requests that are answered where others hang.
func leases(path string) bool { return strings.Contains(path, "/leases") }
func served(path string) bool { return path == "/apis/"+v1alpha1.SchemeGroupVersion.String() }

func hang(fronts [2]*front.Front, manner front.Manner, spared func(string) bool) {
	for _, f := range fronts {
		f.Hang(manner, spared)
	}
}

func (r *binary) endsInTime() {
	GinkgoHelper()
	begun := time.Now()
	r.Stop()
	Eventually(r.Ended, time.Minute).Should(Receive())
	Expect(time.Since(begun)).To(BeNumerically("<", endsWithin))
}

var _ = Describe("While both API servers hang, the binary ends in time", Serial, func() {
	for _, manner := range []front.Manner{front.Silent, front.Halfway} {
		Describe("where each "+string(manner), func() {
			It("as a leader in the middle of its writes", func() {
				control, fronts, flags := twoClusters()
				r := start(control, append(flags, "--controllers=*")...)
				Eventually(r.Status("/readyz"), eventually).Should(Equal(200))
				r.create(fixture.MachineDeployment("pool", 50))
				Eventually(r.machines, eventually).ShouldNot(BeZero())
				hang(fronts, manner, nil)
				r.endsInTime()
			})

			It("as a leader that is answering cluster-autoscaler", func() {
				control, fronts, flags := twoClusters()
				address := running.FreeAddress()
				r := start(control, append(flags, "--controllers=*", "--autoscaler-listen-address="+address)...)
				r.create(fixture.MachineDeployment("pool", 1, func(d *v1alpha1.MachineDeployment) {
					d.Annotations = map[string]string{machinev1alpha1.BoundsAnnotation: "1:50"}
				}))
				client := called(address)
				Eventually(func() error {
					_, err := client.NodeGroupTargetSize(context.Background(), &pb.NodeGroupTargetSizeRequest{Id: "pool"})
					return err
				}, eventually).Should(Succeed())
				hang(fronts, manner, nil)
				answered := make(chan error, 1)
				go func() {
					_, err := client.NodeGroupIncreaseSize(context.Background(), &pb.NodeGroupIncreaseSizeRequest{Id: "pool", Delta: 2})
					answered <- err
				}()
				Consistently(answered, time.Second).ShouldNot(Receive())
				r.endsInTime()
				Eventually(answered, eventually).Should(Receive(HaveOccurred()), "what happened is unknown to the caller")
			})

			It("as a leader that has yet to fill its caches", func() {
				control, fronts, flags := twoClusters()
				hang(fronts, manner, leases)
				r := start(control, append(flags, "--controllers=*")...)
				Eventually(r.holder, eventually).ShouldNot(BeEmpty())
				Eventually(r.Status("/readyz"), eventually).Should(Equal(500), "it leads, and its caches are not filled")
				hang(fronts, manner, nil)
				r.endsInTime()
			})

			It("as a leader that lists and watches for the first time", func() {
				control, fronts, flags := twoClusters()
				hang(fronts, manner, served)
				r := start(control, append(flags, "--controllers=*", "--leader-elect=false")...)
				Consistently(r.Status("/readyz"), time.Second).ShouldNot(Equal(200))
				hang(fronts, manner, nil)
				r.endsInTime()
			})

			It("as a standby", func() {
				control, fronts, flags := twoClusters()
				first := start(control, flags...)
				Eventually(first.holder, eventually).ShouldNot(BeEmpty())
				second := start(control, append(flags, "--leader-elect-retry-period=200ms")...)
				Eventually(second.Status("/readyz"), eventually).Should(Equal(200))
				hang(fronts, manner, nil)
				Consistently(second.Ended, time.Second).ShouldNot(Receive())
				second.endsInTime()
				first.endsInTime()
			})
		})
	}
})
