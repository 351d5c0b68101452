// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/pkg/accepted"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
)

// garden is a seed on which gardenlet writes, with the webhook in between or without it.
type garden struct {
	client.Client
	down bool
}

func newGarden(objects ...client.Object) *garden {
	GinkgoHelper()
	worker := newWorker()
	worker.Spec.Pools[0].Annotations = map[string]string{machine.BoundsAnnotation: "3:9"}
	objects = append(objects, worker,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: nodegroups.ServerName}, Data: map[string][]byte{"ca.crt": []byte("a")}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: nodegroups.ClientName}, Data: map[string][]byte{"tls.crt": []byte("b")}},
	)
	return &garden{Client: reader(objects...)}
}

// write is one of gardenlet, which keeps annotations, and the labels of the manager alone.
func (g *garden) write(ctx context.Context, wanted *appsv1.Deployment) *appsv1.Deployment {
	GinkgoHelper()
	before := g.find(ctx, wanted.Name)
	wanted = wanted.DeepCopy()
	if before != nil {
		wanted.ResourceVersion, wanted.Annotations, wanted.Status = before.ResourceVersion, before.Annotations, before.Status
		if wanted.Name == mutation.DeploymentName {
			wanted.Labels = before.Labels
		}
	}
	g.admit(ctx, wanted, before)
	if before == nil {
		Expect(g.Create(ctx, wanted)).To(Succeed())
	} else {
		Expect(g.Update(ctx, wanted)).To(Succeed())
	}
	return g.find(ctx, wanted.Name)
}

// touch is a write that changes nothing by itself.
func (g *garden) touch(ctx context.Context, name string) *appsv1.Deployment {
	GinkgoHelper()
	before := g.find(ctx, name)
	wanted := before.DeepCopy()
	g.admit(ctx, wanted, before)
	Expect(g.Update(ctx, wanted)).To(Succeed())
	return g.find(ctx, name)
}

func (g *garden) admit(ctx context.Context, wanted, before *appsv1.Deployment) {
	GinkgoHelper()
	if g.down {
		return
	}
	var old client.Object
	if before != nil {
		old = before
	}
	m := &mutator{reader: g.Client, images: Images{Manager: ours, Autoscaler: upstream}}
	Expect(m.Mutate(ctx, wanted, old)).To(Succeed(), "no request is refused")
}

// find returns nil if there is none.
func (g *garden) find(ctx context.Context, name string) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	if err := g.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d); client.IgnoreNotFound(err) == nil && err != nil {
		return nil
	}
	return d
}

// extension replaces the Extension.
func (g *garden) extension(ctx context.Context, change ...func(*extensionsv1alpha1.Extension, *accepted.State)) {
	GinkgoHelper()
	ex := newExtension(change...)
	Expect(client.IgnoreNotFound(g.Delete(ctx, ex.DeepCopy()))).To(Succeed())
	ex.Finalizers = nil
	Expect(g.Create(ctx, ex)).To(Succeed())
}

func (g *garden) served(ctx context.Context) bool {
	return mutation.IsServing(g.find(ctx, mutation.DeploymentName))
}

func (g *garden) unmodified(ctx context.Context) bool {
	return mutation.IsUpstream(g.find(ctx, mutation.AutoscalerName))
}

// alive has gardenlet's writes of a Shoot with an unmodified cluster-autoscaler behind it.
func alive(ctx context.Context) *garden {
	GinkgoHelper()
	g := newGarden()
	g.extension(ctx, wantsUpstream)
	g.write(ctx, rolledOut())
	g.write(ctx, newAutoscaler())
	Expect(g.served(ctx)).To(BeTrue())
	Expect(g.unmodified(ctx)).To(BeTrue())
	return g
}

// rolledOut is the manager as gardenlet writes it, with a pod.
func rolledOut() *appsv1.Deployment {
	d := newDeployment(stock)
	d.Status.Replicas, d.Status.UpdatedReplicas = 1, 1
	return d
}

// fresh is a Shoot with the fork, whose owner has just asked for the other.
func fresh(ctx context.Context) *garden {
	GinkgoHelper()
	g := newGarden()
	g.extension(ctx)
	g.write(ctx, rolledOut())
	g.write(ctx, newAutoscaler())
	Expect(g.unmodified(ctx)).To(BeFalse())
	g.extension(ctx, wantsUpstream)
	return g
}
