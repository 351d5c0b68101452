// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"net"
	"net/http"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// called is a client of a server of node groups, until the spec ends.
func called(address string) pb.CloudProviderClient {
	GinkgoHelper()
	connection, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(connection.Close)
	return pb.NewCloudProviderClient(connection)
}

var _ = Describe("The server of node groups", Serial, func() {
	It("is there while the process leads, scales what it manages, and is gone when the process is", func() {
		server := sim.New(sim.Options{})
		kubeconfig := running.Kubeconfig(server, "mcm")
		address := running.FreeAddress()
		arguments := []string{"--control-kubeconfig=" + kubeconfig, "--target-kubeconfig=" + kubeconfig, "--autoscaler-listen-address=" + address}
		r := start(server, arguments...)
		client := called(address)
		reached := func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := client.NodeGroups(ctx, &pb.NodeGroupsRequest{})
			return err
		}
		Eventually(reached, eventually).Should(Succeed())
		_, err := client.Refresh(context.Background(), &pb.RefreshRequest{})
		Expect(err).NotTo(HaveOccurred())
		r.create(fixture.MachineDeployment("pool", 2, func(d *machinev1alpha1.MachineDeployment) {
			d.Annotations = map[string]string{v1alpha1.BoundsAnnotation: "1:5"}
		}))
		Eventually(r.machines, eventually).Should(Equal(2))
		_, err = client.NodeGroupIncreaseSize(context.Background(), &pb.NodeGroupIncreaseSizeRequest{Id: "pool", Delta: 2})
		Expect(err).NotTo(HaveOccurred())
		Eventually(r.machines, eventually).Should(Equal(4))
		Eventually(func() string { _, text := r.Get("/metrics"); return text }, eventually).Should(
			ContainSubstring(`evenkeel_nodegroup_calls_total{code="OK",method="NodeGroupIncreaseSize"} 1`))

		By("a second process, which waits for its turn, does not listen until the first is gone")
		second := start(server, append(arguments, "--leader-elect-retry-period=200ms")...)
		Eventually(second.Status("/readyz"), eventually).Should(Equal(http.StatusOK))
		r.Stop()
		Eventually(r.Ended, 5*time.Second).Should(Receive(BeNil()))
		Eventually(reached, eventually).Should(Succeed())
		second.Stop()
		Eventually(second.Ended, 5*time.Second).Should(Receive(BeNil()))
		Expect(reached()).NotTo(Succeed())
	})

	It("is not healthy while either cluster does not answer", func() {
		storm.Bubble(suite, func() {
			w := storm.NewApart(sim.Options{Seed: 1})
			defer w.End()
			p, err := processOf(w.ConfigFor("ours"), []string{nodeGroupsName})
			Expect(err).NotTo(HaveOccurred())
			server, err := p.newNodeGroups(versioned.NewForConfigOrDie(p.control))
			Expect(err).NotTo(HaveOccurred())
			_, err = server.Refresh(context.Background(), &pb.RefreshRequest{})
			Expect(err).To(MatchError(And(ContainSubstring("control cluster: the API server has not answered"), ContainSubstring("target cluster: the API server has not answered"))))
		})
	})

	It("says that its address is taken", func() {
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		defer taken.Close()
		server := sim.New(sim.Options{})
		kubeconfig := running.Kubeconfig(server, "mcm")
		r := start(server, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig="+kubeconfig, "--autoscaler-listen-address="+taken.Addr().String())
		Eventually(r.Ended, eventually).Should(Receive(MatchError(ContainSubstring("listen for cluster-autoscaler"))))
	})

	DescribeTable("refuses flags that make no sense",
		func(mention string, arguments ...string) {
			Expect(parsed(arguments...).Validate()).To(MatchError(ContainSubstring(mention)))
		},
		Entry("beyond loopback in clear text", "reachable from outside", "--autoscaler-listen-address=:8086"),
		Entry("half a certificate", "required together", "--autoscaler-listen-address=:8086", "--autoscaler-tls-cert-file=a"),
		Entry("certificates for nothing", "need --autoscaler-listen-address", "--autoscaler-tls-cert-file=a"),
		Entry("no Nodes", "target cluster", "--autoscaler-listen-address=127.0.0.1:8086", "--target-kubeconfig=none", "--control-kubeconfig=x"),
		Entry("no amount", "use a quantity", "--autoscaler-kube-reserved=cpu=much"),
		Entry("a negative amount", "use a quantity", "--autoscaler-kube-reserved=cpu=-1"),
	)

	It("takes what kubelets keep back", func() {
		o := parsed("--autoscaler-kube-reserved=cpu=80m,memory=1Gi")
		reserved, err := o.NodeGroups.reserved()
		Expect(err).NotTo(HaveOccurred())
		Expect(reserved.Cpu().String() + " " + reserved.Memory().String()).To(Equal("80m 1Gi"))
	})
})
