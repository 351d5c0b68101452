// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net"
	"sync"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
)

// runNodeGroups runs a server of node groups until the spec ends, and returns a client of it.
func runNodeGroups(config *rest.Config) pb.CloudProviderClient {
	GinkgoHelper()
	ours, core := versioned.NewForConfigOrDie(config), kubernetes.NewForConfigOrDie(config)
	objects, nodes := stores.New(ours, "default"), target.New(core, nil)
	server, err := nodegroup.New(nodegroup.Clients{Machines: ours.MachineV1alpha1()},
		nodegroup.Informers{Machines: objects, Target: nodes}, nodegroup.Options{Namespace: "default"})
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	objects.Start(ctx)
	nodes.Start(ctx)
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, listener, nil) }()
	connection, err := grpc.NewClient("passthrough:///"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(connection.Close()).To(Succeed())
		cancel()
		Expect(<-ended).To(Succeed())
		objects.Shutdown()
		nodes.Shutdown()
	})
	return pb.NewCloudProviderClient(connection)
}

// inhabited makes a MachineDeployment with a MachineSet, and a Machine and a Node for each name.
func inhabited(ctx context.Context, name string, names ...string) {
	GinkgoHelper()
	md := deployment(name)
	md.Annotations, md.Spec.Replicas = map[string]string{v1alpha1.BoundsAnnotation: "1:5:2"}, int32(len(names))
	create(ctx, md)
	md, err := machines().MachineDeployments("default").Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	set := &v1alpha1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
		*metav1.NewControllerRef(md, mcm.SchemeGroupVersion.WithKind("MachineDeployment"))}}}
	set, err = machines().MachineSets("default").Create(ctx, set, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	core := kubernetes.NewForConfigOrDie(cluster.Config()).CoreV1()
	for _, n := range names {
		m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: n, Labels: map[string]string{"node": n}, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(set, mcm.SchemeGroupVersion.WithKind("MachineSet"))}}}
		m.Spec.Class = v1alpha1.ClassSpec{Kind: "MachineClass", Name: "none"}
		_, err := machines().Machines("default").Create(ctx, m, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = core.Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n}, Spec: corev1.NodeSpec{ProviderID: "virtual:///" + n}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(core.Nodes().Delete(ctx, n, metav1.DeleteOptions{})).To(Succeed())
			Expect(machines().Machines("default").Delete(ctx, n, metav1.DeleteOptions{})).To(Succeed())
		})
	}
	DeferCleanup(func(ctx context.Context) {
		Expect(machines().MachineSets("default").Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	})
}

var _ = Describe("The server of node groups, as its service account", func() {
	It("raises, names and withdraws while others write the same objects all the time", func(ctx context.Context) {
		inhabited(ctx, "groups", "groups-a", "groups-b", "groups-c")
		c := runNodeGroups(alone(ctx, "nodegroup"))
		Eventually(func() error { _, err := c.Refresh(ctx, &pb.RefreshRequest{}); return err }, 10*time.Second).Should(Succeed())
		Eventually(func() ([]*pb.Instance, error) {
			response, err := c.NodeGroupNodes(ctx, &pb.NodeGroupNodesRequest{Id: "groups"})
			return response.GetInstances(), err
		}, 10*time.Second).Should(HaveLen(3))

		noise, quiet := context.WithCancel(ctx)
		var noisy sync.WaitGroup
		noisy.Go(func() {
			for i := range 1000 {
				if noise.Err() != nil {
					return
				}
				body := []byte(`{"status":{"replicas":` + string(rune('0'+i%10)) + `}}`)
				_, _ = machines().MachineDeployments("default").Patch(ctx, "groups", types.MergePatchType, body, metav1.PatchOptions{}, "status")
			}
		})
		for want := range int32(2) {
			_, err := c.NodeGroupIncreaseSize(ctx, &pb.NodeGroupIncreaseSizeRequest{Id: "groups", Delta: 1})
			Expect(err).NotTo(HaveOccurred())
			target, err := c.NodeGroupTargetSize(ctx, &pb.NodeGroupTargetSizeRequest{Id: "groups"})
			Expect(target.GetTargetSize(), err).To(Equal(4 + want))
		}
		Eventually(func() (int32, error) { // it withdraws nothing while machines cannot be read, and is asked again
			target, err := c.NodeGroupTargetSize(ctx, &pb.NodeGroupTargetSizeRequest{Id: "groups"})
			if err != nil || target.GetTargetSize() == 3 {
				return target.GetTargetSize(), err
			}
			_, err = c.NodeGroupDecreaseTargetSize(ctx, &pb.NodeGroupDecreaseTargetSizeRequest{Id: "groups", Delta: 3 - target.GetTargetSize()})
			return 0, err
		}).WithTimeout(time.Minute).Should(BeEquivalentTo(3))
		for range 2 {
			Eventually(func() error { // on a busy machine, conflicts can last as long as the call may
				_, err := c.NodeGroupDeleteNodes(ctx, &pb.NodeGroupDeleteNodesRequest{Id: "groups", Nodes: []*pb.ExternalGrpcNode{{Name: "groups-b", ProviderID: "virtual:///groups-b"}}})
				return err
			}).WithTimeout(time.Minute).Should(Succeed())
		}
		quiet()
		noisy.Wait()
		md, err := machines().MachineDeployments("default").Get(ctx, "groups", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(md.Spec.Replicas).To(BeEquivalentTo(2))
		Expect(md.Annotations["node.machine.sapcloud.io/trigger-deletion-by-mcm"]).To(HavePrefix("groups-b~"))
		_, err = c.NodeGroupIncreaseSize(ctx, &pb.NodeGroupIncreaseSizeRequest{Id: "groups", Delta: 4})
		Expect(status.Code(err)).To(Equal(codes.OutOfRange))
	})

	It("may write nothing else", func(ctx context.Context) {
		inhabited(ctx, "others", "others-a")
		config, body := alone(ctx, "nodegroup"), []byte(`{"metadata":{"labels":{"x":"y"}}}`)
		_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().Patch(ctx, "others-a", types.MergePatchType, body, metav1.PatchOptions{})
		Expect(errors.IsForbidden(err)).To(BeTrue(), "%v", err)
		_, err = versioned.NewForConfigOrDie(config).MachineV1alpha1().Machines("default").Patch(ctx, "others-a", types.MergePatchType, body, metav1.PatchOptions{})
		Expect(errors.IsForbidden(err)).To(BeTrue(), "%v", err)
	})
})
