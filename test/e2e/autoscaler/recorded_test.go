// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"net"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/test/recording"
)

// recordings is where `make record-autoscaler` writes what package nodegroup's specs play again.
const recordings = "../../../pkg/provider/nodegroup/testdata/autoscaler"

// recorded has cluster-autoscaler talk to a server of node groups in this process until the spec ends, and then writes what it said. The
// server's own process does everything else.
func recorded(ctx context.Context, name string) {
	GinkgoHelper()
	patches := &recording.Patches{}
	config := rest.CopyConfig(cluster.Config())
	config.QPS, config.Burst = 100, 200
	config.Wrap(patches.Wrap)
	ours, core := versioned.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config)
	machines, nodes := stores.New(ours, namespace), target.New(core, nil)
	server, err := nodegroup.New(nodegroup.Clients{Machines: ours.MachineV1alpha1()}, nodegroup.Informers{Machines: machines, Target: nodes},
		nodegroup.Options{Namespace: namespace, GPULabel: nodegroup.DefaultGPULabel})
	Expect(err).NotTo(HaveOccurred())
	informers := map[string]cache.SharedIndexInformer{
		"machineclasses": machines.Classes(), "machinedeployments": machines.Deployments(), "machinesets": machines.Sets(), "machines": machines.Machines(), "nodes": nodes.Nodes(),
	}
	held := map[string]cache.Store{}
	for resource, informer := range informers {
		held[resource] = informer.GetStore()
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	machines.Start(running)
	nodes.Start(running)
	DeferCleanup(func() { stop(); machines.Shutdown(); nodes.Shutdown() })
	for _, informer := range informers {
		Expect(cache.WaitFor(ctx, "", informer.HasSyncedChecker())).To(BeTrue())
	}
	listen(ctx, server, recording.NewRecorder(held, patches), filepath.Join(recordings, name+".jsonl"))
}

// listen serves on an address of its own until the spec ends.
func listen(ctx context.Context, server pb.CloudProviderServer, recorder *recording.Recorder, file string) {
	GinkgoHelper()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	calls := grpc.NewServer(grpc.UnaryInterceptor(recorder.Observe))
	pb.RegisterCloudProviderServer(calls, server)
	usual := address
	address = listener.Addr().String()
	ended := make(chan error)
	go func() { ended <- calls.Serve(listener) }()
	DeferCleanup(func() {
		address = usual
		calls.Stop()
		Expect(<-ended).To(Succeed())
		if !CurrentSpecReport().Failed() {
			Expect(recorder.Save(file)).To(Succeed())
		}
	})
}

var _ = Describe("Stories of an unmodified cluster-autoscaler", Label(needsBinary, records), func() {
	It("reserve: it raises up to max and not beyond, and removes empty machines", func(ctx context.Context) {
		p := newPool(ctx, "reserve", "reserve", "1:4:1", 1)
		p.becomes(ctx, "R1 1+1+0")
		workload(ctx, "reserve", "reserve", 1)
		runs(ctx, "reserve", 1)
		recorded(ctx, "reserve")
		autoscale()
		demand(ctx, "reserve", 2)
		p.becomes(ctx, "R2 2+1+0")
		demand(ctx, "reserve", 5)
		p.becomes(ctx, "R4 4+0+0")
		Consistently(func() string { return p.counts(ctx) }, 3*time.Second).Should(Equal("R4 4+0+0"))
		demand(ctx, "reserve", 2)
		p.becomes(ctx, "R2 2+1+0")
	})

	It("drained: it moves pods off a machine and removes it", func(ctx context.Context) {
		p := newPool(ctx, "drained", "drained", "1:4", 2)
		p.becomes(ctx, "R2 2+0+0")
		workload(ctx, "drained", "drained", 2, takes("1"))
		runs(ctx, "drained", 2)
		recorded(ctx, "drained")
		autoscale()
		p.becomes(ctx, "R1 1+0+0")
		runs(ctx, "drained", 2)
	})

	It("empty: it scales from zero and back", func(ctx context.Context) {
		p := newPool(ctx, "empty", "empty", "0:3", 0)
		recorded(ctx, "empty")
		autoscale()
		workload(ctx, "empty", "empty", 2)
		runs(ctx, "empty", 2)
		p.becomes(ctx, "R2 2+0+0")
		demand(ctx, "empty", 0)
		p.becomes(ctx, "R0 0+0+0")
	})

	It("outage: it takes back what cannot be created, and uses another group", func(ctx context.Context) {
		best, other := newPool(ctx, "outage-1", "outage", "0:3", 0), pool{name: "outage-2", workers: "outage", cpus: 8}
		other.create(ctx, "0:3", 0)
		outage(ctx, "outage-1")
		recorded(ctx, "outage")
		autoscale("--balance-similar-node-groups=false", "--expander=least-waste")
		workload(ctx, "outage", "outage", 1)
		runs(ctx, "outage", 1)
		best.becomes(ctx, "R0 0+0+0")
		other.becomes(ctx, "R1 1+0+0")
	})

	It("late: it removes a machine whose Node does not register", func(ctx context.Context) {
		p := pool{name: "late", workers: "late", cpus: 4, boot: "10m"}
		p.create(ctx, "0:3", 0)
		recorded(ctx, "late")
		autoscale("--max-node-provision-time=10s")
		workload(ctx, "late", "late", 1)
		p.becomes(ctx, "R1 0+0+1")
		By("waiting for the next list of machines that it takes, every two minutes")
		Eventually(p.counts).WithContext(ctx).WithTimeout(2 * soon).Should(Equal("R0 0+0+0"))
	})

	It("withdrawn: it lowers a target that no machine follows", func(ctx context.Context) {
		p := newPool(ctx, "withdrawn", "withdrawn", "1:3", 1)
		workload(ctx, "withdrawn", "withdrawn", 1)
		runs(ctx, "withdrawn", 1)
		recorded(ctx, "withdrawn")
		Expect(cluster.Process(manager).Stop()).To(Succeed())
		DeferCleanup(func() { Expect(cluster.Process(manager).Start()).To(Succeed()) })
		autoscale("--max-node-provision-time=10s")
		demand(ctx, "withdrawn", 2)
		p.becomes(ctx, "R2 1+0+0")
		p.becomes(ctx, "R1 1+0+0")
	})

	It("unready: it waits while too many Nodes are not ready", func(ctx context.Context) {
		p := newPool(ctx, "unready", "unready", "1:4", 2)
		workload(ctx, "unready", "unready", 2)
		runs(ctx, "unready", 2)
		list, err := p.machines(ctx)
		Expect(err).NotTo(HaveOccurred())
		recorded(ctx, "unready")
		autoscale("--ok-total-unready-count=0", "--max-total-unready-percentage=30", "--max-node-startup-time=1s", "--scale-down-enabled=false")
		p.says(ctx, "unready Healthy 2 of 1:4")
		cutOff(ctx, list[0].Name)
		p.becomes(ctx, "R2 1+0+1")
		demand(ctx, "unready", 3)
		Consistently(func() string { return p.counts(ctx) }, 5*time.Second).Should(Equal("R2 1+0+1"))
		faults(ctx, "")
		runs(ctx, "unready", 3)
		p.becomes(ctx, "R3 3+0+0")
	})

	It("restarted: it goes on after a restart, within bounds that changed, and keeps the min", func(ctx context.Context) {
		p := newPool(ctx, "restarted", "restarted", "1:2", 1)
		workload(ctx, "restarted", "restarted", 1)
		runs(ctx, "restarted", 1)
		recorded(ctx, "restarted")
		autoscaler := autoscale()
		demand(ctx, "restarted", 3)
		p.becomes(ctx, "R2 2+0+0")
		Expect(autoscaler.Kill()).To(Succeed())
		p.bound(ctx, "2:3")
		Expect(autoscaler.Start()).To(Succeed())
		runs(ctx, "restarted", 3)
		demand(ctx, "restarted", 1)
		p.becomes(ctx, "R2 2+0+0")
		Consistently(func() string { return p.counts(ctx) }, 10*time.Second).Should(Equal("R2 2+0+0"))
	})
})
