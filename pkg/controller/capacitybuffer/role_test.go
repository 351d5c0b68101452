// SPDX-License-Identifier: Apache-2.0

package capacitybuffer_test

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/stores"
	"github.com/evenkeel/evenkeel/internal/target"
	ourfake "github.com/evenkeel/evenkeel/pkg/client/clientset/versioned/fake"
	"github.com/evenkeel/evenkeel/pkg/client/informers/externalversions"
	. "github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer"
	. "github.com/evenkeel/evenkeel/test/builders/capacitybuffer"
	"github.com/evenkeel/evenkeel/test/sim/world"
)

var _ = Describe("The role of the controller in the target cluster", func() {
	It("covers all that the controller waits for, also where no other controller runs", func(ctx SpecContext) {
		core := fake.NewClientset()
		var mu sync.Mutex
		listed := map[string]bool{}
		core.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			listed[a.GetResource().Resource] = true
			return false, nil, nil
		})
		readTarget(ctx, core)
		granted := grants("evenkeel-capacitybuffer-target")
		mu.Lock()
		defer mu.Unlock()
		Expect(listed).NotTo(BeEmpty())
		for resource := range listed {
			Expect(granted).To(HaveKeyWithValue(resource, ContainElements("list", "watch")))
		}
	})
})

// readTarget reads what the controller asks for of the target cluster.
func readTarget(ctx context.Context, core kubernetes.Interface) {
	GinkgoHelper()
	ours := ourfake.NewSimpleClientset()
	objects, machines, nodes, shapes := externalversions.NewSharedInformerFactory(ours, 0), stores.New(ours, Namespace), target.New(core, nil), NewShapes(core, nil)
	it, err := New(Clients{}, Informers{
		Buffers: objects.CapacityBuffer().V1beta1().CapacityBuffers().Informer(), Reserves: objects.Autoscaling().V1alpha1().Reserves().Informer(),
		Machines: machines, Target: nodes, Shapes: shapes,
	}, Options{Namespace: Namespace, Scales: new(ScaleReader)})
	Expect(err).NotTo(HaveOccurred())
	reading, end := context.WithCancel(ctx)
	for _, informers := range []world.Informers{world.InformersOf(objects), machines, nodes, world.InformersOf(shapes)} {
		informers.Start(reading)
		DeferCleanup(informers.Shutdown)
	}
	Expect(cache.WaitFor(ctx, "", it.Filled()...)).To(BeTrue())
	Expect(shapes.WaitForCacheSyncWithContext(ctx).Err).NotTo(HaveOccurred())
	end()
	it.Run(reading)
}

// grants returns the verbs that a rendered ClusterRole grants, by resource.
func grants(name string) map[string][]string {
	GinkgoHelper()
	file, err := os.Open("../../../kubernetes/deploy/target/access.yaml")
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	verbs := map[string][]string{}
	for documents := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var role rbacv1.ClusterRole
		if err := documents.Decode(&role); err == io.EOF {
			return verbs
		}
		if !strings.HasSuffix(role.Kind, "Role") || role.Name != name {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				verbs[resource] = slices.Concat(verbs[resource], rule.Verbs)
			}
		}
	}
}
