// SPDX-License-Identifier: Apache-2.0

package preparation_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation"
	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
	clusters "github.com/evenkeel/evenkeel/test/sim/world"
)

var suite *testing.T

func TestPreparation(t *testing.T) {
	suite = t
	RegisterFailHandler(Fail)
	RunSpecs(t, "Preparation")
}

// world is a server with a pool, and a controller.
type world struct {
	*sim.Server
	ours     versioned.Interface
	core     kubernetes.Interface
	states   *preparation.States
	requests *preparation.Requests
	// metrics are those of the controller, and changed counts how often machines have changed.
	metrics *prometheus.Registry
	changed atomic.Int64
	// held returns how much the controller remembers, once it has ended.
	held func() int
	end  func()
}

const (
	user = "preparation"
	// limit is how many bytes the images on a machine can have.
	limit = 1 << 40
)

// play runs body on a pool with two machines in reserve, r1 and r2, and one that serves, s1.
func play(body func(w *world)) {
	GinkgoHelper()
	storm.Bubble(suite, func() {
		server := sim.New(sim.Options{Seed: 1, Resources: slices.Concat(sim.Core, sim.Machine, sim.Workloads, sim.Shapes, []sim.Resource{{
			Group: autoscaling.GroupName, Version: "v1alpha1", Name: "reserves", Kind: "Reserve", Namespaced: true, Status: true, Generation: true,
		}})})
		defer server.Close()
		config := server.ConfigFor("user")
		config.QPS = -1
		w := &world{Server: server, ours: versioned.NewForConfigOrDie(config), core: kubernetes.NewForConfigOrDie(config)}
		w.pool()
		w.start()
		defer func() { w.end() }()
		body(w)
	})
}

func (w *world) start() {
	config := w.ConfigFor(user)
	config.QPS = -1
	core := kubernetes.NewForConfigOrDie(config)
	machines, nodes := stores.New(versioned.NewForConfigOrDie(config), fixture.Namespace), target.New(core, nil)
	w.states, w.metrics = &preparation.States{}, prometheus.NewRegistry()
	w.states.Subscribe(func(machines []types.UID) { w.changed.Add(int64(len(machines))) })
	w.requests = &preparation.Requests{}
	objects := externalversions.NewSharedInformerFactory(versioned.NewForConfigOrDie(config), 0)
	reserves := objects.Autoscaling().V1alpha1().Reserves().Informer()
	Expect(w.requests.Read(reserves)).To(Succeed())
	control, workers := clusters.ControlCluster(versioned.NewForConfigOrDie(config)), clusters.TargetCluster(core)
	c, err := preparation.New(core, machines, nodes, preparation.Options{
		Cluster: control, Target: workers, Requests: w.requests,
		Image: "wait", States: w.states, Registerer: w.metrics, Limits: plan.Limits{PerPool: 5, PerRegistry: 5, Bytes: limit, Patience: 10 * time.Minute},
	})
	Expect(err).NotTo(HaveOccurred())
	w.held = c.Held
	ctx, cancel := context.WithCancel(context.Background())
	machines.Start(ctx)
	nodes.StartNodes(ctx)
	objects.StartWithContext(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = control.Run(ctx) })
	running.Go(func() { _ = workers.Run(ctx) })
	running.Go(func() { c.Run(ctx) })
	w.end = func() {
		cancel()
		running.Wait()
		machines.Shutdown()
		nodes.Shutdown()
		objects.Shutdown()
	}
	time.Sleep(time.Second)
}

func (w *world) pool() {
	GinkgoHelper()
	ctx := context.Background()
	plain := fixture.MachineDeployment("pool", 3)
	d := &api.MachineDeployment{ObjectMeta: plain.ObjectMeta, Spec: api.MachineDeploymentSpec{StockMachineDeploymentSpec: plain.Spec}}
	d, err := w.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Create(ctx, d, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	w.set(d, "pool-1", "r1", "r2", "s1")
}

// set makes a MachineSet of a MachineDeployment with these machines. Those whose names begin with r are in reserve.
func (w *world) set(d *api.MachineDeployment, name string, machines ...string) {
	GinkgoHelper()
	ctx := context.Background()
	set := &mcm.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fixture.Namespace, Labels: d.Spec.Template.Labels, OwnerReferences: ownedBy("MachineDeployment", d.Name, d.UID)}}
	set.Spec.Replicas, set.Spec.Template, set.Spec.Selector = int32(len(machines)), d.Spec.Template, d.Spec.Selector
	set, err := w.ours.MachineV1alpha1().MachineSets(fixture.Namespace).Create(ctx, set, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, name := range machines {
		m := fixture.Machine(name, func(m *mcm.Machine) {
			m.Labels = map[string]string{"name": "pool", "node": name}
			m.OwnerReferences = ownedBy("MachineSet", set.Name, set.UID)
		})
		node := fixture.Node(name)
		if strings.HasPrefix(name, "r") {
			mark := api.Reserve{Since: time.Now().UTC().Truncate(time.Second)}
			m.Annotations = map[string]string{api.ReserveAnnotation: mark.String()}
			node.Spec.Taints = []corev1.Taint{{Key: api.ReserveTaintKey, Effect: corev1.TaintEffectNoSchedule}}
		}
		node.Status.Images = []corev1.ContainerImage{{Names: []string{"registry.example/web:v1"}, SizeBytes: 700}, {Names: []string{"docker.io/library/job:latest"}, SizeBytes: 300}}
		_, err := w.ours.MachineV1alpha1().Machines(fixture.Namespace).Create(ctx, m, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = w.core.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

func ownedBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: mcm.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}}
}

// ask sets the annotation of the pool.
func (w *world) ask(text string) {
	GinkgoHelper()
	w.patch("machinedeployments", "pool", fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, api.PrepareAnnotation, text))
}

func (w *world) patch(resource, name, merge string) {
	GinkgoHelper()
	var err error
	switch resource {
	case "machinedeployments":
		_, err = w.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Patch(context.Background(), name, types.MergePatchType, []byte(merge), metav1.PatchOptions{})
	case "machines":
		_, err = w.ours.MachineV1alpha1().Machines(fixture.Namespace).Patch(context.Background(), name, types.MergePatchType, []byte(merge), metav1.PatchOptions{})
	}
	Expect(err).NotTo(HaveOccurred())
	time.Sleep(5 * time.Second)
}

func (w *world) pods() []corev1.Pod {
	GinkgoHelper()
	list, err := w.core.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	return list.Items
}

// images sets what a Node reports.
func (w *world) images(node string, images ...corev1.ContainerImage) {
	GinkgoHelper()
	n, err := w.core.CoreV1().Nodes().Get(context.Background(), node, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	n.Status.Images = images
	_, err = w.core.CoreV1().Nodes().UpdateStatus(context.Background(), n, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// where describes the pods: the namespace, the Node and the images of each.
func (w *world) where() (all []string) {
	GinkgoHelper()
	for _, pod := range w.pods() {
		var images []string
		for _, v := range pod.Spec.Volumes {
			images = append(images, v.Image.Reference)
		}
		all = append(all, fmt.Sprint(pod.Namespace, " ", pod.Spec.NodeName, " ", strings.Join(images, "+")))
	}
	return all
}

// report has kubelets report the state of all pods' containers.
func (w *world) report(state corev1.ContainerState) {
	GinkgoHelper()
	for _, pod := range w.pods() {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "wait", State: state}}
		_, err := w.core.CoreV1().Pods(pod.Namespace).UpdateStatus(context.Background(), &pod, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	time.Sleep(5 * time.Second)
}

var running = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

// runningFor has run for some time.
func runningFor(d time.Duration) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(d))}}
}

// metric is the value of a metric, or its values by label.
func (w *world) metric(name string) string {
	GinkgoHelper()
	families, err := w.metrics.Gather()
	Expect(err).NotTo(HaveOccurred())
	var words []string
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.Metric {
			text := fmt.Sprint(m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum())
			if len(m.Label) > 0 {
				text = m.Label[0].GetValue() + " " + text
			}
			words = append(words, text)
		}
	}
	return strings.Join(words, ", ")
}

// progress of a machine.
func (w *world) progress(machine string) string {
	GinkgoHelper()
	m, err := w.ours.MachineV1alpha1().Machines(fixture.Namespace).Get(context.Background(), machine, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	p, known := w.states.Of(m.UID)
	if !known {
		return "none"
	}
	text := fmt.Sprintf("%d/%d", p.Done, p.Wishes)
	if p.Failure != nil {
		text += " " + string(p.Failure.Reason) + ": " + p.Failure.Message
	}
	return text
}

// digest of an image.
var digest = strings.Repeat("0", 64)

const asked = `[{namespace: shop, images: [registry.example/web:v1, job], imagePullSecrets: [key]}]`

var _ = Describe("Machines in reserve", func() {
	It("get the images that their MachineDeployment asks for, and are prepared when they are there", func() {
		play(func(w *world) {
			w.ask(asked)
			Expect(w.where()).To(ConsistOf("shop r1 job+registry.example/web:v1", "shop r2 job+registry.example/web:v1"))
			Expect(w.progress("r1")).To(Equal("0/1"))
			Expect(w.changed.Load()).To(BeEquivalentTo(2))
			w.report(runningFor(-3 * time.Second)) // two seconds after their creation
			Expect(w.metric("evenkeel_preparation_duration_seconds")).To(Equal("4"))
			Expect(w.changed.Load()).To(BeEquivalentTo(4))
			Expect(w.progress("r1")).To(Equal("1/1"))
			Expect(w.metric("evenkeel_preparation_pulled_bytes_total")).To(Equal("2000"))
			Expect(w.metric("evenkeel_preparation_machines")).To(Equal("failed 0, prepared 2, preparing 0"))
			Expect(w.progress("s1")).To(Equal("none"))
			before := len(w.Writes())
			time.Sleep(time.Hour)
			Expect(w.Writes()).To(HaveLen(before), "nothing is written at rest")
			w.end()
			w.start()
			Expect(w.metric("evenkeel_preparation_duration_seconds")).To(Equal("0"), "another process has counted it")
			time.Sleep(time.Minute)
			Expect(w.metric("evenkeel_preparation_pulled_bytes_total")).To(Equal("0"), "that, too")
		})
	})

	It("have a limit of bytes, which waits for Nodes that report the sizes of images later", func() {
		play(func(w *world) {
			w.images("r1")
			w.ask(`[{namespace: shop, images: [registry.example/web:v1]}, {namespace: shop, images: [job]}]`)
			w.report(runningFor(0))
			Expect(w.where()).To(ConsistOf("shop r1 registry.example/web:v1", "shop r2 registry.example/web:v1", "shop r2 job"))
			time.Sleep(20 * time.Second)
			w.images("r1", corev1.ContainerImage{Names: []string{"registry.example/web:v1"}, SizeBytes: limit})
			time.Sleep(time.Minute)
			Expect(w.where()).To(ConsistOf("shop r1 registry.example/web:v1", "shop r2 registry.example/web:v1", "shop r2 job"))
			Expect(w.progress("r1")).To(HavePrefix("1/2 LimitReached: "))
			Expect(w.metric("evenkeel_preparation_pulled_bytes_total")).To(Equal(fmt.Sprint(float64(limit + 700))))
		})
	})

	DescribeTable("know the size of an image by the name that Nodes have for it", func(reference, name string) {
		play(func(w *world) {
			for _, node := range []string{"r1", "r2"} {
				w.images(node, corev1.ContainerImage{Names: []string{name}, SizeBytes: 700})
			}
			w.ask(fmt.Sprintf(`[{namespace: shop, images: [%q]}]`, reference))
			w.report(runningFor(0))
			Expect(w.metric("evenkeel_preparation_pulled_bytes_total")).To(Equal("1400"))
		})
	},
		Entry("without a tag", "registry.example/web", "registry.example/web:latest"),
		Entry("from a registry with a port", "registry.example:5000/web", "registry.example:5000/web:latest"),
		Entry("with a digest", "registry.example/web@sha256:"+digest, "registry.example/web@sha256:"+digest),
		Entry("with a tag and a digest", "registry.example:5000/web:v1@sha256:"+digest, "registry.example:5000/web@sha256:"+digest),
		Entry("Docker's own", "job:v1", "docker.io/library/job:v1"),
		Entry("Docker's own with its registry", "docker.io/job:v1", "docker.io/library/job:v1"),
		Entry("a user's at Docker", "shop/web:v1", "docker.io/shop/web:v1"),
	)

	It("wait a minute at most for the sizes of images that Nodes do not report", func() {
		play(func(w *world) {
			w.images("r1")
			w.ask(`[{namespace: shop, images: [registry.example/web:v1]}, {namespace: shop, images: [job]}]`)
			w.report(running)
			time.Sleep(50 * time.Second)
			Expect(w.where()).NotTo(ContainElement("shop r1 job"))
			time.Sleep(20 * time.Second)
			Expect(w.where()).To(ContainElement("shop r1 job"))
		})
	})

	It("lose their pods when they leave the reserve, also in the middle of a pull", func() {
		play(func(w *world) {
			w.ask(asked)
			w.patch("machines", "r1", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, api.ReserveAnnotation))
			Expect(w.where()).To(ConsistOf("shop r2 job+registry.example/web:v1"))
			Expect(w.progress("r1")).To(Equal("none"))
		})
	})

	It("lose their pods when nobody asks any more", func() {
		play(func(w *world) {
			w.ask(asked)
			Expect(w.changed.Load()).To(BeEquivalentTo(2))
			w.patch("machinedeployments", "pool", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, api.PrepareAnnotation))
			Expect(w.where()).To(BeEmpty())
			Expect(w.progress("r1")).To(Equal("none"))
			Expect(w.changed.Load()).To(BeEquivalentTo(4), "who shows the progress must show it no longer")
		})
	})

	DescribeTable("lose their pods once they are named for deletion, or are being deleted", func(leave func(w *world)) {
		play(func(w *world) {
			w.ask(asked)
			leave(w)
			Expect(w.where()).To(ConsistOf("shop r2 job+registry.example/web:v1"))
			Expect(w.progress("r1")).To(Equal("none"))
		})
	},
		Entry("named", func(w *world) {
			w.patch("machines", "r1", fmt.Sprintf(`{"metadata":{"annotations":{%q:"1",%q:"2026-03-01T12:00:00Z"}}}`, machineutils.MachinePriority, machineutils.MarkedForDeletionTime))
		}),
		Entry("deleted, and kept by a finalizer", func(w *world) {
			w.patch("machines", "r1", `{"metadata":{"finalizers":["example.com/stay"]}}`)
			Expect(w.ours.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), "r1", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(5 * time.Second)
		}),
	)

	It("get images though the watch of their MachineSet is late", func() {
		play(func(w *world) {
			w.ask(asked)
			d, err := w.ours.MachineV1alpha1().MachineDeployments(fixture.Namespace).Get(context.Background(), "pool", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			w.Hold("machinesets", user)
			w.set(d, "pool-2", "r3")
			time.Sleep(5 * time.Second)
			w.Release("machinesets", user)
			time.Sleep(5 * time.Second)
			Expect(w.where()).To(ContainElement("shop r3 job+registry.example/web:v1"))
		})
	})

	DescribeTable("are left alone after a silence of their API servers until each watch shows what happened in it", func(late string) {
		play(func(w *world) {
			ctx, web := context.Background(), `{namespace: shop, images: [registry.example/web:v1]}`
			w.ask("[" + web + "]")
			w.report(running)
			w.Down(true, user)
			time.Sleep(time.Minute)
			w.patch("machines", "r1", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, api.ReserveAnnotation))
			w.Hold(late, user)
			w.Down(false, user)
			time.Sleep(70 * time.Second) // caches pause for a minute at most before they try again
			seen := []byte(`{"metadata":{"labels":{"seen":"again"}}}`)
			w.patch("machines", "r2", string(seen))
			_, err := w.core.CoreV1().Nodes().Patch(ctx, "r2", types.MergePatchType, seen, metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			for _, pod := range w.pods() {
				_, err := w.core.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, seen, metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			w.ask("[" + web + ", {namespace: shop, images: [job]}]")
			Expect(w.where()).To(ConsistOf("shop r1 registry.example/web:v1", "shop r2 registry.example/web:v1"))
			w.Release(late, user)
			time.Sleep(time.Minute)
			Expect(w.where()).To(ConsistOf("shop r2 registry.example/web:v1", "shop r2 job"))
		})
	},
		Entry("that of Machines", "machines"),
		Entry("that of Nodes", "nodes"),
		Entry("that of pods", "pods"),
	)

	It("lose pods that are left on Nodes without a Machine, and those of an earlier process", func() {
		play(func(w *world) {
			w.ask(asked)
			w.end()
			Expect(w.ours.MachineV1alpha1().Machines(fixture.Namespace).Delete(context.Background(), "r2", metav1.DeleteOptions{})).To(Succeed())
			w.start()
			time.Sleep(5 * time.Second)
			Expect(w.where()).To(ConsistOf("shop r1 job+registry.example/web:v1"))
			w.patch("machinedeployments", "pool", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, api.PrepareAnnotation))
			Expect(w.where()).To(BeEmpty())
		})
	})

	DescribeTable("keep their pods while another process has yet to read what is asked for", func(late string) {
		play(func(w *world) {
			ctx := context.Background()
			web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
			_, err := w.core.AppsV1().Deployments("shop").Create(ctx, web, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "evening"}, Spec: autoscaling.ReserveSpec{
				Pools: autoscaling.ReservePools{Names: []string{"pool"}}, Prepare: []autoscaling.Preparation{{Namespace: "shop", Images: []string{"more"}}},
			}}
			_, err = w.ours.AutoscalingV1alpha1().Reserves(fixture.Namespace).Create(ctx, r, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			w.ask(`[{namespace: shop, workloads: [Deployment/web]}]`)
			w.report(running)
			time.Sleep(time.Minute)
			all := ConsistOf("shop r1 web", "shop r2 web", "shop r1 more", "shop r2 more")
			w.report(running)
			Expect(w.where()).To(all)
			w.end()
			w.LatencyOf(func(r sim.Request) (before, after time.Duration) {
				if r.User == user && r.Resource == late {
					return 3 * time.Minute, 0
				}
				return 0, 0
			})
			before := len(w.Writes())
			w.start()
			time.Sleep(10 * time.Minute)
			Expect(w.where()).To(all)
			Expect(w.Writes()).To(HaveLen(before))
			Expect(w.progress("r1")).To(Equal("2/2"))
			w.end()
			Expect(w.core.AppsV1().Deployments("shop").Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
			Expect(w.ours.AutoscalingV1alpha1().Reserves(fixture.Namespace).Delete(ctx, "evening", metav1.DeleteOptions{})).To(Succeed())
			w.start()
			time.Sleep(10 * time.Minute)
			Expect(w.where()).To(BeEmpty())
		})
	},
		Entry("a workload", "deployments"),
		Entry("Reserves", "reserves"),
	)

	It("are pulled for once, also where the answer to the creation is lost or the watch is late", func() {
		play(func(w *world) {
			w.Hold("pods", user)
			w.AfterWrite(func(one sim.Write) error {
				if one.Resource == "pods" && one.User == user {
					return apierrors.NewTimeoutError("the answer is lost", 1)
				}
				return nil
			})
			tries := 0
			w.Admit(func(a sim.Admission) error {
				if a.Resource == "pods" && a.User == user {
					tries++
				}
				return nil
			})
			w.ask(asked)
			time.Sleep(4 * time.Minute)
			Expect(w.where()).To(HaveLen(2))
			Expect(tries).To(Equal(2))
			Expect(w.progress("r1")).To(Equal("0/1"))
			w.ask(asked + " ")
			Expect(tries).To(Equal(2))
			w.Release("pods", user)
			time.Sleep(4 * time.Minute)
			Expect(w.where()).To(HaveLen(2))
			Expect(w.progress("r1")).To(Equal("0/1"))
		})
	})

	It("get other pods where theirs went before a watch showed them", func() {
		play(func(w *world) {
			w.Hold("pods", user)
			w.ask(asked)
			for _, pod := range w.pods() {
				Expect(w.core.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{})).To(Succeed())
			}
			w.BreakWatches(user)
			w.Release("pods", user)
			time.Sleep(time.Hour)
			Expect(w.where()).To(HaveLen(2))
		})
	})

	It("are forgotten with their pods when they are gone", func() {
		play(func(w *world) {
			ctx := context.Background()
			w.Admit(func(a sim.Admission) error {
				if a.Resource == "pods" && a.Namespace == "none" {
					return apierrors.NewNotFound(corev1.Resource("namespaces"), "none")
				}
				return nil
			})
			w.ask(`[{namespace: shop, images: [job]}, {namespace: none, images: [job]}]`)
			w.report(running)
			w.end()
			Expect(w.held()).To(Equal(4), "two pods that have pulled images, and two that were refused")
			w.start()
			for _, name := range []string{"r1", "r2"} {
				Expect(w.ours.MachineV1alpha1().Machines(fixture.Namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
				Expect(w.core.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
			}
			time.Sleep(5 * time.Minute)
			Expect(w.where()).To(BeEmpty())
			w.end()
			Expect(w.held()).To(BeZero())
		})
	})

	It("say why images cannot be pulled, and are tried again", func() {
		play(func(w *world) {
			tries := 0
			var allow atomic.Bool
			w.Admit(func(a sim.Admission) error {
				if a.Resource == "pods" && a.User == user && !allow.Load() {
					tries++
					return apierrors.NewForbidden(corev1.Resource("pods"), a.Name, fmt.Errorf("exceeded quota"))
				}
				return nil
			})
			w.ask(asked)
			Expect(w.progress("r1")).To(HavePrefix("0/1 Refused: create pod in namespace shop: "))
			Expect(tries).To(Equal(2))
			time.Sleep(30 * time.Second)
			Expect(tries).To(Equal(2))
			allow.Store(true)
			time.Sleep(2 * time.Minute)
			Expect(w.progress("r1")).To(Equal("0/1"))
			w.report(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "job: not found"}})
			Expect(w.progress("r1")).To(Equal("0/1 ImageNotFound: job: not found"))
			Expect(w.metric("evenkeel_preparation_failures")).To(Equal("ImageNotFound 2, Invalid 0, LimitReached 0, NoAccess 0, NoSpace 0, PullFailed 0, Refused 0, TooSlow 0, WorkloadNotFound 0"))
			w.report(running)
			Expect(w.progress("r1")).To(Equal("1/1"))
		})
	})

	It("say that the cluster has no image volumes", func() {
		play(func(w *world) {
			w.Admit(func(a sim.Admission) error {
				if a.Resource == "pods" && a.User == user {
					return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), a.Name, field.ErrorList{field.Required(field.NewPath("spec", "volumes").Index(0), "must specify a volume type")})
				}
				return nil
			})
			w.ask(asked)
			Expect(w.progress("r1")).To(Equal("0/1 Refused: the target cluster has no image volumes, which pull the images: they need Kubernetes 1.35"))
		})
	})

	It("get what Reserves ask for that select their MachineDeployment, beside what it asks for itself", func() {
		play(func(w *world) {
			ctx, reserves := context.Background(), w.ours.AutoscalingV1alpha1().Reserves(fixture.Namespace)
			w.ask(`[{namespace: shop, images: [own]}]`)
			Expect(w.requests.Any()).To(BeFalse())
			r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "evening"}, Spec: autoscaling.ReserveSpec{
				Pools: autoscaling.ReservePools{Names: []string{"pool"}}, Prepare: []autoscaling.Preparation{{Namespace: "shop", Images: []string{"more"}}},
			}}
			other := r.DeepCopy()
			other.Name, other.Spec.Pools.Names, other.Spec.Prepare[0].Images = "other", []string{"another"}, []string{"foreign"}
			far := r.DeepCopy()
			far.Namespace, far.Spec.Prepare[0].Images = "far", []string{"foreign"}
			r.Namespace, other.Namespace = fixture.Namespace, fixture.Namespace
			for _, one := range []*autoscaling.Reserve{r, other, far} {
				_, err := w.ours.AutoscalingV1alpha1().Reserves(one.Namespace).Create(ctx, one, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			time.Sleep(5 * time.Second)
			w.report(running)
			time.Sleep(time.Minute) // no Node reports the size of the first image
			Expect(w.requests.Any()).To(BeTrue())
			Expect(w.where()).To(ConsistOf("shop r1 own", "shop r2 own", "shop r1 more", "shop r2 more"))
			change := func(merge string) {
				_, err := reserves.Patch(ctx, "evening", types.MergePatchType, []byte(merge), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				time.Sleep(5 * time.Second)
			}
			change(`{"spec":{"prepare":[{"namespace":"shop","images":["changed"]}]}}`)
			Expect(w.where()).To(ConsistOf("shop r1 own", "shop r2 own", "shop r1 changed", "shop r2 changed"))
			change(`{"spec":{"suspend":true}}`)
			Expect(w.where()).To(ConsistOf("shop r1 own", "shop r2 own"))
			w.patch("machinedeployments", "pool", fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, api.PrepareAnnotation))
			change(`{"spec":{"suspend":false,"pools":{"names":null,"workerPools":["web"]}},"metadata":{"finalizers":["example.com/stay"]}}`)
			Expect(w.where()).To(BeEmpty())
			w.patch("machinedeployments", "pool", fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeTemplate":{"metadata":{"labels":{%q:"web"}}}}}}}`, pool.WorkerPoolLabel))
			Expect(w.where()).To(ConsistOf("shop r1 changed", "shop r2 changed"))
			Expect(reserves.Delete(ctx, "evening", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(5 * time.Second)
			Expect(w.where()).To(BeEmpty())
		})
	})

	It("get what a Reserve asks for while it selects a label of their MachineDeployment", func() {
		play(func(w *world) {
			r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "evening"}, Spec: autoscaling.ReserveSpec{
				Pools: autoscaling.ReservePools{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}}, Prepare: []autoscaling.Preparation{{Namespace: "shop", Images: []string{"more"}}},
			}}
			_, err := w.ours.AutoscalingV1alpha1().Reserves(fixture.Namespace).Create(context.Background(), r, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(5 * time.Second)
			Expect(w.where()).To(BeEmpty())
			w.patch("machinedeployments", "pool", `{"metadata":{"labels":{"team":"shop"}}}`)
			Expect(w.where()).To(ConsistOf("shop r1 more", "shop r2 more"))
			w.patch("machinedeployments", "pool", `{"metadata":{"labels":{"team":null}}}`)
			Expect(w.where()).To(BeEmpty())
		})
	})

	It("get what CapacityBuffers ask for, beside that, which changes nothing about the machine", func() {
		play(func(w *world) {
			r := &autoscaling.Reserve{ObjectMeta: metav1.ObjectMeta{Name: "capacity-buffers.pool", Labels: map[string]string{v1beta1.ReserveLabel: "true"}}, Spec: autoscaling.ReserveSpec{
				Pools: autoscaling.ReservePools{Names: []string{"pool"}}, Prepare: []autoscaling.Preparation{{Namespace: "shop", Images: []string{"nonsense"}, Workloads: []string{"Deployment/none"}}},
			}}
			_, err := w.ours.AutoscalingV1alpha1().Reserves(fixture.Namespace).Create(context.Background(), r, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(5 * time.Second)
			Expect(w.where()).To(ConsistOf("shop r1 nonsense", "shop r2 nonsense"))
			w.report(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}})
			Expect(w.progress("r1")).To(Equal("0/0"))
			w.ask(`[{namespace: shop, images: [own]}]`)
			Expect(w.where()).To(ConsistOf("shop r1 nonsense", "shop r2 nonsense", "shop r1 own", "shop r2 own"))
			Expect(w.progress("r1")).To(Equal("0/1"))
			Expect(w.metric("evenkeel_preparation_machines")).To(Equal("failed 0, prepared 0, preparing 2"))
		})
	})

	It("say that an annotation is invalid", func() {
		play(func(w *world) {
			w.ask(`[{namespace: shop}]`)
			Expect(w.progress("r1")).To(ContainSubstring("Invalid: annotation evenkeel.machine.sapcloud.io/prepare: entry 1: set images or workloads"))
			Expect(w.where()).To(BeEmpty())
		})
	})

	It("follow the images of a workload as they change", func() {
		play(func(w *world) {
			ctx := context.Background()
			w.ask(`[{namespace: shop, workloads: [Deployment/web]}]`)
			Expect(w.progress("r1")).To(Equal("0/0 WorkloadNotFound: Deployment/web does not exist in namespace shop"))
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
			deployment.Spec.Template.Spec = corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "first", Image: "init"}}, Containers: []corev1.Container{{Name: "web", Image: "web:v1"}, {Name: "again", Image: "web:v1"}},
				ImagePullSecrets: []corev1.LocalObjectReference{{Name: "key"}}, ServiceAccountName: "web",
			}
			all := w.core.AppsV1().Deployments("shop")
			deployment, err := all.Create(ctx, deployment, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(5 * time.Second)
			Expect(w.where()).To(ConsistOf("shop r1 init+web:v1", "shop r2 init+web:v1"))
			pod := w.pods()[0]
			Expect(pod.Spec.ServiceAccountName).To(Equal("web"))
			Expect(pod.Spec.ImagePullSecrets).To(ConsistOf(corev1.LocalObjectReference{Name: "key"}))
			for i := range deployment.Spec.Template.Spec.Containers {
				deployment.Spec.Template.Spec.Containers[i].Image = "web:v2"
			}
			_, err = all.Update(ctx, deployment, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(5 * time.Second)
			Expect(w.where()).To(ConsistOf("shop r1 init+web:v2", "shop r2 init+web:v2"))
			Expect(all.Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
			time.Sleep(5 * time.Second)
			Expect(w.where()).To(BeEmpty())
			Expect(w.progress("r1")).To(HavePrefix("0/0 WorkloadNotFound"))
			watches := w.BreakWatches(user)
			w.ask("[]")
			Expect(w.BreakWatches(user)).To(Equal(watches-1), "it is followed no longer")
		})
	})

	It("say that a workload cannot be read for as long as that is so, and no longer", func() {
		play(func(w *world) {
			w.ask(`[{namespace: shop, workloads: [Deployment/web]}]`)
			Expect(w.progress("r1")).To(HavePrefix("0/0 WorkloadNotFound: "))
			w.Trouble("deployments", sim.Trouble{Reads: 1, Only: []sim.Answer{sim.Forbidden}}, user)
			w.BreakWatches(user)
			time.Sleep(time.Minute)
			Expect(w.progress("r1")).To(HavePrefix("0/0 Refused: read Deployment/web in namespace shop: "))
			w.Trouble("deployments", sim.Trouble{}, user)
			time.Sleep(2 * time.Minute)
			Expect(w.progress("r1")).To(HavePrefix("0/0 WorkloadNotFound: "))
		})
	})

	It("get the images of workloads of all kinds that can be named", func() {
		play(func(w *world) {
			ctx := context.Background()
			template := func(image string) corev1.PodTemplateSpec {
				return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}}
			}
			meta := metav1.ObjectMeta{Name: "web"}
			create := map[string]func() error{
				"DaemonSet": func() error {
					_, err := w.core.AppsV1().DaemonSets("shop").Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template("daemonset")}}, metav1.CreateOptions{})
					return err
				},
				"Deployment": func() error {
					_, err := w.core.AppsV1().Deployments("shop").Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template("deployment")}}, metav1.CreateOptions{})
					return err
				},
				"Job": func() error {
					_, err := w.core.BatchV1().Jobs("shop").Create(ctx, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: template("job")}}, metav1.CreateOptions{})
					return err
				},
				"PodTemplate": func() error {
					_, err := w.core.CoreV1().PodTemplates("shop").Create(ctx, &corev1.PodTemplate{ObjectMeta: meta, Template: template("podtemplate")}, metav1.CreateOptions{})
					return err
				},
				"ReplicaSet": func() error {
					_, err := w.core.AppsV1().ReplicaSets("shop").Create(ctx, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Template: template("replicaset")}}, metav1.CreateOptions{})
					return err
				},
				"ReplicationController": func() error {
					_, err := w.core.CoreV1().ReplicationControllers("shop").Create(ctx, &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Template: ptr.To(template("replicationcontroller"))}}, metav1.CreateOptions{})
					return err
				},
				"StatefulSet": func() error {
					_, err := w.core.AppsV1().StatefulSets("shop").Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: template("statefulset")}}, metav1.CreateOptions{})
					return err
				},
			}
			Expect(create).To(HaveLen(len(autoscaling.PreparedKinds)))
			for _, kind := range autoscaling.PreparedKinds {
				Expect(create[kind]()).To(Succeed())
				w.ask("[{namespace: shop, workloads: [" + kind + "/web]}]")
				Expect(w.where()).To(ContainElement("shop r1 " + strings.ToLower(kind)))
			}
		})
	})

	It("are left alone while a Node is open", func() {
		play(func(w *world) {
			ctx := context.Background()
			node, err := w.core.CoreV1().Nodes().Get(ctx, "r1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			node.Spec.Taints = nil
			_, err = w.core.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			w.ask(asked)
			Expect(w.where()).To(ConsistOf(HavePrefix("shop r2 ")))
		})
	})

	It("are left alone while a Node cannot run pods", func() {
		play(func(w *world) {
			ctx := context.Background()
			node, err := w.core.CoreV1().Nodes().Get(ctx, "r1", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue})
			node, err = w.core.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			w.ask(asked)
			Expect(w.where()).To(ConsistOf(HavePrefix("shop r2 ")))
			node.Status.Conditions = node.Status.Conditions[:len(node.Status.Conditions)-1]
			_, err = w.core.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			time.Sleep(5 * time.Second)
			Expect(w.where()).To(HaveLen(2))
		})
	})

	It("run pods that belong to their Node, need nothing, and are no workload", func() {
		play(func(w *world) {
			w.ask(asked)
			pod := w.pods()[0]
			Expect(pool.IsWorkload(&pod)).To(BeFalse())
			owner := metav1.GetControllerOfNoCopy(&pod)
			Expect(owner.Kind + owner.Name).To(Equal("Node" + pod.Spec.NodeName))
			Expect(pod.Annotations).To(HaveKeyWithValue(pool.SafeToEvict, "true"))
			Expect(*pod.Spec.AutomountServiceAccountToken).To(BeFalse())
			Expect(pod.Spec.Containers).To(HaveLen(1))
			Expect(pod.Spec.Containers[0].Image).To(Equal("wait"))
			Expect(pod.Spec.Containers[0].Resources.Requests).To(BeEmpty())
		})
	})

	It("run pods that the restricted Pod Security Standard allows", func() {
		play(func(w *world) {
			w.ask(asked)
			spec := w.pods()[0].Spec
			Expect(*spec.SecurityContext.RunAsNonRoot).To(BeTrue())
			Expect(spec.SecurityContext.SeccompProfile).To(Equal(&corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}))
			Expect(*spec.Containers[0].SecurityContext.AllowPrivilegeEscalation).To(BeFalse())
			Expect(spec.Containers[0].SecurityContext.Capabilities).To(Equal(&corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}))
		})
	})
})
