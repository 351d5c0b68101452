// SPDX-License-Identifier: Apache-2.0

//go:build !race

package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	ours "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	pb "github.com/evenkeel/evenkeel/pkg/provider/nodegroup/externalgrpc"
	"github.com/evenkeel/evenkeel/test/collector"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/running"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

// flagged is a process that is started with flags, on one simulated cluster.
type flagged struct {
	*binary
	cluster *sim.Server
	ours    ours.Interface
	core    kubernetes.Interface
	over    bool
}

func newFlagged() *flagged {
	server := sim.New(sim.Options{Resources: everyKind})
	config := server.ConfigFor("user")
	return &flagged{cluster: server, ours: ours.NewForConfigOrDie(config), core: kubernetes.NewForConfigOrDie(config)}
}

// withFlags starts the binary on a new cluster, and waits until it is ready.
func withFlags(arguments ...string) *flagged {
	GinkgoHelper()
	f := newFlagged()
	f.run(arguments...)
	return f
}

// run starts the binary, and waits until it is ready. It knows what there was before.
func (f *flagged) run(arguments ...string) {
	GinkgoHelper()
	kubeconfig := running.Kubeconfig(f.cluster, "mcm")
	f.binary = start(f.cluster, append(arguments, "--control-kubeconfig="+kubeconfig, "--target-kubeconfig="+kubeconfig)...)
	DeferCleanup(f.end)
	Eventually(f.Status("/readyz"), eventually).Should(Equal(http.StatusOK))
}

func (f *flagged) patch(name, patch string) {
	GinkgoHelper()
	world.Patch(f.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace), name, "%s", patch)
}

// end stops the process, once.
func (f *flagged) end() {
	GinkgoHelper()
	if f.over {
		return
	}
	f.over = true
	f.Stop()
	Eventually(f.Ended, eventually).Should(Receive(BeNil()))
}

// zone makes a MachineDeployment of no machines, with a class of its own in a zone of its name.
func (f *flagged) zone(name string, change func(*mcm.MachineDeployment, *mcm.NodeTemplate)) {
	GinkgoHelper()
	template := &mcm.NodeTemplate{InstanceType: "large", Region: "here", Zone: name, Capacity: corev1.ResourceList{
		"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"),
	}}
	d := fixture.MachineDeployment(name, 0, func(d *mcm.MachineDeployment) {
		d.Labels, d.Spec.Template.Spec.Class.Name = map[string]string{pools: "p"}, name
		d.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{api.PoolExcessAnnotation: "0"}
	})
	change(d, template)
	class := fixture.MachineClass(name, func(k *mcm.MachineClass) { k.NodeTemplate = template })
	_, err := f.ours.MachineV1alpha1().MachineClasses(fixture.Namespace).Create(context.Background(), class, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	f.create(d)
}

// pools is the default of --pool-label.
const pools = "worker.gardener.cloud/pool"

// spread waits until the balance controller has seen the zones, whose pool has an excess of 0.
func (f *flagged) spread(names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Eventually(func() []mcm.MachineDeploymentCondition { return f.deployment(name).Status.Conditions }, eventually).Should(ContainElement(HaveField("Type", BeEquivalentTo("PoolExcessSpread"))))
	}
}

// replicas of the two zones.
func (f *flagged) replicas() string {
	text := ""
	for _, name := range []string{"a", "b"} {
		text += fmt.Sprint(f.deployment(name).Spec.Replicas, " ")
	}
	return text
}

// reserve makes a MachineDeployment of one machine for workload and one in reserve, whose machines run at once.
func (f *flagged) reserve(excess string) {
	GinkgoHelper()
	f.create(fixture.MachineDeployment("pool", 1, func(d *mcm.MachineDeployment) { d.Annotations = map[string]string{api.BoundsAnnotation: excess} }))
	Eventually(f.machines, eventually).Should(Equal(2))
	Eventually(f.inReserve, eventually).Should(Equal(1)) // a machine that is created early is marked a moment later
}

func (f *flagged) inReserve() int {
	marked := 0
	for _, m := range f.listed() {
		if pool.Marked(&m) {
			marked++
		}
	}
	return marked
}

// boot makes all machines run, with their Nodes, and a pod on each that serves.
func (f *flagged) boot() {
	GinkgoHelper()
	for _, m := range f.listed() {
		node := fixture.Node(m.Name, func(n *corev1.Node) { n.Spec.Taints = m.Spec.NodeTemplateSpec.Spec.Taints })
		world.CreateWithStatus(f.core.CoreV1().Nodes(), node)
		machines := f.ours.MachineV1alpha1().Machines(fixture.Namespace)
		world.Patch(machines, m.Name, `{"metadata":{"labels":{%q:%q}},"spec":{"providerID":%q}}`, mcm.NodeLabelKey, m.Name, node.Spec.ProviderID)
		_, err := machines.Patch(context.Background(), m.Name, types.MergePatchType, []byte(`{"status":{"currentStatus":{"phase":"Running"}}}`), metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
		if !pool.Marked(&m) {
			world.CreateWithStatus(f.core.CoreV1().Pods(fixture.Namespace), fixture.Pod(m.Name, full, func(p *corev1.Pod) { p.Spec.NodeName = m.Name }))
		}
	}
}

func (f *flagged) listed() []mcm.Machine {
	GinkgoHelper()
	list, err := f.ours.MachineV1alpha1().Machines(fixture.Namespace).List(context.Background(), metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}

func (f *flagged) deployment(name string) *api.MachineDeployment {
	GinkgoHelper()
	d, err := f.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return d
}

// reason of the condition ReserveReady.
func (f *flagged) reason() string {
	for _, c := range f.deployment("pool").Status.Conditions {
		if c.Type == api.ReserveReady {
			return c.Reason
		}
	}
	return ""
}

// asks has images prepared, each with a pod of its own.
func (f *flagged) asks(images ...string) {
	GinkgoHelper()
	var entries []string
	for i, image := range images {
		entries = append(entries, fmt.Sprintf("{namespace: n%d, images: [%s]}", i, image))
	}
	f.patch("pool", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, api.PrepareAnnotation, "["+strings.Join(entries, ", ")+"]"))
}

// preparers are the pods that pull images.
func (f *flagged) preparers() []corev1.Pod {
	GinkgoHelper()
	list, err := f.core.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{LabelSelector: plan.Label})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}

// waits creates a pod that no Node has room for.
func (f *flagged) waits() {
	GinkgoHelper()
	world.CreateWithStatus(f.core.CoreV1().Pods(fixture.Namespace), fixture.Pod("waiting", full, func(p *corev1.Pod) {
		p.Spec.Priority = ptr.To[int32](0)
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	}))
}

// differing is how zones differ.
type differing func(*mcm.MachineDeployment, *mcm.NodeTemplate)

// labelled gives the Nodes of each zone a label of another value, and one of the same.
func labelled(key string) differing {
	return func(d *mcm.MachineDeployment, n *mcm.NodeTemplate) {
		d.Spec.Template.Spec.NodeTemplateSpec.Labels = map[string]string{key: n.Zone, "team": "shop"}
	}
}

// smaller gives the machines of one zone less memory, by 6 percent.
func smaller(_ *mcm.MachineDeployment, n *mcm.NodeTemplate) {
	if n.Zone == "b" {
		n.Capacity["memory"] = resource.MustParse("15Gi")
	}
}

func equal(*mcm.MachineDeployment, *mcm.NodeTemplate) {}

const splits = "--balance-mode=ScaleUp"

var _ = DescribeTable("The binary splits growth over two zones", Serial, func(want string, differ differing, arguments ...string) {
	f := withFlags(arguments...)
	f.zone("a", differ)
	f.zone("b", differ)
	f.spread("a", "b")
	f.patch("a", `{"spec":{"replicas":4}}`)
	Eventually(f.replicas, eventually).Should(Equal(want))
	Consistently(f.replicas, time.Second).Should(Equal(want))
},
	Entry("with --balance-mode", "2 2 ", equal, splits),
	Entry("not without --balance-mode", "4 0 ", equal),
	Entry("not with --balance-similar-node-groups=false", "4 0 ", equal, splits, "--balance-similar-node-groups=false"),
	Entry("not if a label differs", "4 0 ", labelled("mine"), splits),
	Entry("if --balancing-ignore-label names it", "2 2 ", labelled("mine"), splits, "--balancing-ignore-label=mine"),
	Entry("if --balancing-label names another", "2 2 ", labelled("mine"), splits, "--balancing-label=team"),
	Entry("if --similar-pool-label names another", "2 2 ", labelled("mine"), splits, "--similar-pool-label=team"),
	Entry("not if a label of a cloud differs", "4 0 ", labelled("eks.amazonaws.com/nodegroup"), splits),
	Entry("if --similar-cloud is that cloud", "2 2 ", labelled("eks.amazonaws.com/nodegroup"), splits, "--similar-cloud=aws"),
	Entry("not if memory differs", "4 0 ", smaller, splits, "--max-allocatable-difference-ratio=0.1", "--max-free-difference-ratio=0.1"),
	Entry("not if allocatable memory differs, with --memory-difference-ratio", "4 0 ", smaller, splits, "--memory-difference-ratio=0.1", "--max-free-difference-ratio=0.1"),
	Entry("not if free memory differs, with --max-allocatable-difference-ratio", "4 0 ", smaller, splits, "--memory-difference-ratio=0.1", "--max-allocatable-difference-ratio=0.1"),
	Entry("with --max-free-difference-ratio", "2 2 ", smaller, splits, "--memory-difference-ratio=0.1", "--max-allocatable-difference-ratio=0.1", "--max-free-difference-ratio=0.1"),
	Entry("within --nodes", "3 1 ", equal, splits, "--nodes=0:1:default.b"),
)

var _ = Describe("The binary", Serial, func() {
	It("spreads the excess over the pool that --pool-label names", func() {
		f := withFlags("--pool-label=team")
		for _, name := range []string{"a", "b"} {
			f.zone(name, func(d *mcm.MachineDeployment, n *mcm.NodeTemplate) {
				labelled("mine")(d, n) // otherwise they would be a pool because they are similar
				d.Labels = map[string]string{"team": "shop"}
				d.Spec.Template.Spec.NodeTemplateSpec.Annotations = map[string]string{api.PoolExcessAnnotation: "2"}
			})
		}
		for _, name := range []string{"a", "b"} {
			Eventually(func() string { return f.deployment(name).Annotations[api.ShareAnnotation] }, eventually).Should(Equal("1"), name)
		}
	})

	It("leaves a zone whose machines do not become ready within --balance-boot-patience", func() {
		f := withFlags(splits, "--balance-boot-patience=1s")
		f.zone("a", equal)
		f.zone("b", equal)
		f.spread("a", "b")
		f.patch("a", `{"spec":{"replicas":1}}`)
		Eventually(f.replicas, eventually).Should(Equal("0 1 "))
	})

	It("taints machines in reserve with --reserve-taint-effects", func() {
		f := withFlags("--reserve-taint-effects=NoSchedule,NoExecute")
		f.reserve("1:5:1")
		var effects []corev1.TaintEffect
		for _, m := range f.listed() {
			for _, t := range m.Spec.NodeTemplateSpec.Spec.Taints {
				effects = append(effects, t.Effect)
			}
		}
		Expect(effects).To(ConsistOf(corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute))
	})

	It("counts the reserve where --reserve-accounting says", func() {
		f := withFlags("--reserve-accounting=inclusive")
		f.reserve("1:5:1")
		f.boot()
		Eventually(func() string { return f.deployment("pool").Annotations[api.AppliedExcessAnnotation] }, eventually).Should(ContainSubstring("counted=1"))
	})

	It("gives up a reserve machine that does not become ready within --reserve-boot-patience", func() {
		f := withFlags("--reserve-boot-patience=1s")
		f.reserve("1:5:1")
		Eventually(f.reason, eventually).Should(Equal("CannotBeMade"))
	})

	It("has images pulled by a pod with --preparation-image, which takes too long after --preparation-patience", func() {
		f := withFlags("--preparation-image=mine/wait:1", "--preparation-patience=1s")
		f.reserve("1:5:1")
		f.boot()
		f.asks("a")
		Eventually(f.preparers, eventually).Should(HaveLen(1))
		Expect(f.preparers()[0].Spec.Containers[0].Image).To(Equal("mine/wait:1"))
		Eventually(f.reason, eventually).Should(Equal("PreparationFailed"))
	})

	DescribeTable("has images pulled on as many machines at once", func(pods int, arguments ...string) {
		f := withFlags(arguments...)
		f.create(fixture.MachineDeployment("pool", 1, func(d *mcm.MachineDeployment) { d.Annotations = map[string]string{api.BoundsAnnotation: "1:5:2"} }))
		Eventually(f.inReserve, eventually).Should(Equal(2))
		f.boot()
		f.asks("a")
		Eventually(f.preparers, eventually).Should(HaveLen(pods))
		Consistently(f.preparers, time.Second).Should(HaveLen(pods))
	},
		Entry("by default", 2),
		Entry("as --preparation-pulls allows", 1, "--preparation-pulls=1"),
		Entry("as --preparation-pulls-per-registry allows", 1, "--preparation-pulls-per-registry=1"),
	)

	It("has no more images pulled where they have --preparation-bytes", func() {
		f := withFlags("--preparation-bytes=5")
		f.reserve("1:5:1")
		f.boot()
		f.asks("a", "b")
		Eventually(f.preparers, eventually).Should(HaveLen(1))
		first := f.preparers()[0]
		ctx, nodes := context.Background(), f.core.CoreV1().Nodes()
		_, err := nodes.Patch(ctx, first.Spec.NodeName, types.MergePatchType, []byte(`{"status":{"images":[{"names":["docker.io/library/a:latest"],"sizeBytes":5}]}}`), metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
		_, err = f.core.CoreV1().Pods(first.Namespace).Patch(ctx, first.Name, types.MergePatchType, []byte(`{"status":{"phase":"Running","containerStatuses":[{"name":"wait","state":{"running":{}}}]}}`), metav1.PatchOptions{}, "status")
		Expect(err).NotTo(HaveOccurred())
		Eventually(f.reason, eventually).Should(Equal("PreparationFailed"))
		Expect(f.preparers()).To(HaveLen(1))
	})

	DescribeTable("gives a waiting pod a machine in reserve", func(replicas int, arguments ...string) {
		f := withFlags(arguments...)
		f.reserve("1:5:1")
		f.boot()
		Eventually(f.reason, eventually).Should(Equal("Complete"))
		f.waits()
		wanted := func() int { return int(f.deployment("pool").Spec.Replicas) }
		Eventually(wanted, eventually).Should(Equal(replicas))
		Consistently(wanted, time.Second).Should(Equal(replicas))
	},
		Entry("by default", 2),
		Entry("not with --instant-release=false", 1, "--instant-release=false"),
		Entry("not if its scheduler is none of --release-schedulers", 1, "--release-schedulers=mine"),
		Entry("not if its priority is below --release-priority-cutoff", 1, "--release-priority-cutoff=1"),
	)

	It("answers cluster-autoscaler with --autoscaler-gpu-label and --autoscaler-kube-reserved", func() {
		address := running.FreeAddress()
		f := withFlags("--autoscaler-listen-address="+address, "--autoscaler-gpu-label=gpus", "--autoscaler-kube-reserved=cpu=1")
		f.zone("a", func(d *mcm.MachineDeployment, _ *mcm.NodeTemplate) {
			d.Annotations = map[string]string{api.BoundsAnnotation: "0:5"}
		})
		client := called(address)
		Eventually(func() (string, error) {
			answer, err := client.GPULabel(context.Background(), &pb.GPULabelRequest{})
			return answer.GetLabel(), err
		}, eventually).Should(Equal("gpus"))
		Eventually(func() (string, error) {
			answer, err := client.NodeGroupTemplateNodeInfo(context.Background(), &pb.NodeGroupTemplateNodeInfoRequest{Id: "a"})
			if err != nil {
				return "", err
			}
			node := &corev1.Node{}
			err = node.Unmarshal(answer.GetNodeBytes())
			return node.Status.Allocatable.Cpu().String(), err
		}, eventually).Should(Equal("3"))
	})

	It("leaves a pod to the autoscaler that waits longer than --release-patience although there is room", func() {
		f := newFlagged()
		world.CreateWithStatus(f.core.CoreV1().Nodes(), fixture.Node("roomy"))
		f.run("--release-patience=1s")
		f.reserve("1:5:1")
		f.boot()
		f.waits()
		touches := 0
		Eventually(func() string {
			touches++
			world.Patch(f.core.CoreV1().Nodes(), "roomy", `{"metadata":{"labels":{"touched":"%d"}}}`, touches)
			_, text := f.Get("/metrics")
			return text
		}, eventually).Should(ContainSubstring(`evenkeel_release_pods{outcome="Doubtful"} 1`))
		Expect(f.deployment("pool").Spec.Replicas).To(BeEquivalentTo(1))
	})

	It("serves its health at --bind-address", func() {
		server := sim.New(sim.Options{})
		r := start(server, "--control-kubeconfig="+running.Kubeconfig(server, "mcm"), "--target-kubeconfig=none", "--bind-address=127.0.0.2")
		elsewhere := *r.Process
		elsewhere.URL = strings.Replace(r.URL, "127.0.0.1", "127.0.0.2", 1)
		Eventually(elsewhere.Status("/healthz"), eventually).Should(Equal(http.StatusOK))
		Expect(r.Status("/healthz")()).To(BeZero())
		r.Stop()
		Eventually(r.Ended, eventually).Should(Receive(BeNil()))
	})

	It("serves with the certificates of --autoscaler-tls-* and --secure-metrics-*", func() {
		cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
		Expect(err).NotTo(HaveOccurred())
		folder := GinkgoT().TempDir()
		certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
		Expect(os.WriteFile(certFile, cert, 0o600)).To(Succeed())
		Expect(os.WriteFile(keyFile, key, 0o600)).To(Succeed())
		own, err := certutil.ParseCertsPEM(cert)
		Expect(err).NotTo(HaveOccurred())
		groups, metrics := running.FreeAddress(), running.FreeAddress()
		withFlags("--autoscaler-listen-address="+groups, "--autoscaler-tls-cert-file="+certFile, "--autoscaler-tls-key-file="+keyFile, "--autoscaler-tls-client-ca-file="+certFile,
			"--secure-metrics-address="+metrics, "--secure-metrics-cert-file="+certFile, "--secure-metrics-key-file="+keyFile)
		for address, asked := range map[string]bool{groups: true, metrics: false} {
			Eventually(func(g Gomega) {
				served, authorities := handshake(g, address)
				g.Expect(served.Equal(own[0])).To(BeTrue())
				if asked {
					g.Expect(authorities).To(ContainElement(own[1].RawSubject))
				}
			}, eventually).Should(Succeed(), address)
		}
	})

	It("sends traces to --tracing-endpoint, as many as --tracing-samples-per-million says", func() {
		for samples, are := range map[int]bool{1_000_000: true, 0: false} {
			c, err := collector.Start()
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(c.Stop)
			f := withFlags("--tracing-endpoint="+c.Endpoint(), fmt.Sprint("--tracing-samples-per-million=", samples))
			f.reserve("1:5:1")
			f.end()
			Expect(len(c.Spans()) > 0).To(Equal(are), "%d", samples)
		}
	})
})

// handshake returns the certificate that is served at an address, and the names of the authorities whose clients it lets in.
func handshake(g Gomega, address string) (served *x509.Certificate, authorities [][]byte) {
	connection, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		authorities = r.AcceptableCAs
		return &tls.Certificate{}, nil
	}})
	g.Expect(err).NotTo(HaveOccurred())
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0], authorities
}
