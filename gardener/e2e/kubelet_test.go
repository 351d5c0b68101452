// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/evenkeel/evenkeel/test/localcluster"
)

// Images of machine-controller-manager.
const (
	evenkeel = "evenkeel/machine-controller-manager"
	stock    = "gardener/machine-controller-manager"
	// stockAgain is the same binary under another name.
	stockAgain = "gardener/machine-controller-manager:again"
)

// images have, by the path of a command in the working directory of the image, the binary that it is.
var images = map[string]map[string]string{
	evenkeel:   {"./machine-controller-manager": "machine-controller-manager"},
	stock:      {"./machine-controller-manager": "stock-machine-controller-manager"},
	stockAgain: {"./machine-controller-manager": "stock-machine-controller-manager"},
}

// kubelet is a double of what runs the pod of a Deployment: see the package comment.
type kubelet struct {
	namespace string
	// deployment is what it runs the pods of, machine-controller-manager or cluster-autoscaler. The second has no other container.
	deployment string
	sidecar    sidecar
	driver     *localcluster.Process
	stop       context.CancelFunc
	done       chan struct{}

	mu   sync.Mutex
	pods []*pod
}

// sidecar is what the provider's container runs in the namespace of a Shoot, with the port of its metrics.
type sidecar func(ctx context.Context, namespace string, port int) (program string, arguments []string)

// virtualProvider is the machine-controller with the virtual provider. It has rights of its own.
func virtualProvider(_ context.Context, namespace string, port int) (string, []string) {
	return "machine-controller", []string{
		"--control-kubeconfig=" + seedCluster.Kubeconfig(), "--target-kubeconfig=" + targetCluster.Kubeconfig(), "--namespace=" + namespace,
		"--port=" + strconv.Itoa(port), "--kube-api-qps=150", "--kube-api-burst=200", "--v=2",
		"--leader-elect=false", "--resource-exhausted-retry=5s", "--machine-safety-orphan-vms-period=10s",
	}
}

// startKubelet runs machine-controller-manager until the end of the spec.
func startKubelet(ctx context.Context, namespace string, provider sidecar) *kubelet {
	return startKubeletFor(ctx, namespace, "machine-controller-manager", provider)
}

func startKubeletFor(ctx context.Context, namespace, deployment string, provider sidecar) *kubelet {
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	k := &kubelet{namespace: namespace, deployment: deployment, sidecar: provider, stop: stop, done: make(chan struct{})}
	go k.run(life)
	DeferCleanup(k.shutdown)
	return k
}

func (k *kubelet) shutdown() {
	k.stop()
	<-k.done
	for _, p := range k.running() {
		p.end()
	}
	if k.driver != nil {
		Expect(k.driver.Stop()).To(Succeed())
	}
}

func (k *kubelet) run(ctx context.Context) {
	defer GinkgoRecover()
	defer close(k.done)
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			k.sync(ctx)
		}
	}
}

// sync brings what runs to what the Deployment wants, as a rolling update does: the new pod runs before the old one ends.
func (k *kubelet) sync(ctx context.Context) {
	var d appsv1.Deployment
	err := seed.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: k.deployment}, &d)
	if client.IgnoreNotFound(err) != nil && ctx.Err() != nil {
		return
	}
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	wanted := err == nil && ptr.Deref(d.Spec.Replicas, 1) > 0 && imageOf(&d) != forksImage
	old := slices.DeleteFunc(k.running(), func(p *pod) bool { return wanted && p.runs(d.Spec.Template) })
	if wanted && len(k.running()) == len(old) {
		k.start(ctx, &d)
	}
	for _, p := range old {
		p.end()
	}
	for _, p := range k.running() {
		p.mounts.refresh(ctx, k.namespace)
	}
	k.drive(ctx, wanted)
	if err == nil {
		k.report(ctx, &d, int32(len(k.running())))
	}
}

// report plays the controller of Deployments: others ask whether a replica is available.
func (k *kubelet) report(ctx context.Context, d *appsv1.Deployment, n int32) {
	if d.Status.AvailableReplicas == n && d.Status.ObservedGeneration == d.Generation {
		return
	}
	patch := client.MergeFrom(d.DeepCopy())
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	if err := seed.Status().Patch(ctx, d, patch); ctx.Err() == nil {
		Expect(client.IgnoreNotFound(err)).To(Succeed())
	}
}

func (k *kubelet) start(ctx context.Context, d *appsv1.Deployment) {
	spec := d.Spec.Template.Spec
	container := spec.Containers[0]
	program, known := images[container.Image][container.Command[0]]
	Expect(known).To(BeTrue(), "image %s has no %s", container.Image, container.Command[0])
	k.mu.Lock()
	name := fmt.Sprintf("%s-%s-%d", shortName(k.namespace), shortNames[k.deployment], len(k.pods))
	k.mu.Unlock()
	p := &pod{
		image: container.Image, command: container.Command, annotations: d.Spec.Template.Annotations, port: must(seedCluster.Port(name)),
		groups: fmt.Sprintf("127.0.0.1:%d", must(seedCluster.Port(name+"-groups"))), mounts: newMounts(spec), grace: time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second,
	}
	p.mounts.refresh(ctx, k.namespace)
	var err error
	p.process, err = seedCluster.Run(name, binary(program), inside(ctx, d, container.Command[1:], p)...)
	Expect(err).NotTo(HaveOccurred())
	k.mu.Lock()
	k.pods = append(k.pods, p)
	k.mu.Unlock()
	if container.LivenessProbe == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.process.WaitUntil(limited, p.alive(container.LivenessProbe)); ctx.Err() == nil {
		Expect(err).NotTo(HaveOccurred())
	}
}

// shortNames are the parts of processes' names, by the Deployment.
var shortNames = map[string]string{"machine-controller-manager": "mcm", "cluster-autoscaler": "ca"}

// running are the pods that have not ended.
func (k *kubelet) running() []*pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(k.pods), func(p *pod) bool { return !p.process.Running() })
}

// overdue is an error where a process of an image did not end within the grace period of its pod, and how long the slowest took.
func (k *kubelet) overdue(image string) (slowest time.Duration, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.image != image {
			continue
		}
		slowest = max(slowest, p.ended)
		if p.killed {
			err = fmt.Errorf("%s was killed %v after SIGTERM", p.process.Name(), p.grace)
		}
	}
	return slowest, err
}

// restart ends the processes. They are started again, as containers are.
func (k *kubelet) restart() {
	for _, p := range k.running() {
		p.end()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.driver != nil {
		Expect(k.driver.Stop()).To(Succeed())
	}
}

// drive runs the provider's container, which is in the same pod.
func (k *kubelet) drive(ctx context.Context, wanted bool) {
	switch {
	case k.sidecar == nil:
	case !wanted && k.driver != nil && k.driver.Running():
		Expect(k.driver.Stop()).To(Succeed())
	case wanted && (k.driver == nil || !k.driver.Running()):
		name := shortName(k.namespace) + "-driver"
		program, arguments := k.sidecar(ctx, k.namespace, must(seedCluster.Port(name)))
		process, err := seedCluster.Run(name, binary(program), arguments...)
		if ctx.Err() == nil {
			Expect(err).NotTo(HaveOccurred())
		}
		k.mu.Lock()
		k.driver = process
		k.mu.Unlock()
	}
}

// shortName is the last part of a Shoot's namespace.
func shortName(namespace string) string { return namespace[strings.LastIndex(namespace, "--")+2:] }
