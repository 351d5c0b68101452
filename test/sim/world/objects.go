// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/evenkeel/evenkeel/pkg/client/clientset/versioned"
	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// Clients returns the typed clients of a configuration.
func Clients(config *rest.Config) (kubernetes.Interface, versioned.Interface) {
	return kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config)
}

// Store is a simulated server, or a world of them.
type Store interface {
	Objects(schema.GroupVersionResource) []*unstructured.Unstructured
	Get(kind schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured
}

// Decoded returns an object that a typed client wrote.
func Decoded[T any](content map[string]any) *T {
	object := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, object); err != nil {
		panic(err) // it was written by a typed client
	}
	return object
}

// Stored returns one stored object. If there is none, the spec fails.
func Stored[T any](s Store, kind schema.GroupVersionResource, namespace, name string) *T {
	ginkgo.GinkgoHelper()
	object := s.Get(kind, namespace, name)
	if object == nil {
		ginkgo.Fail(fmt.Sprintf("there is no %s %s/%s", kind.Resource, namespace, name))
	}
	return Decoded[T](object.Object)
}

// List returns the stored objects of one kind, by namespace and name.
func List[T any](s Store, kind schema.GroupVersionResource) (all []*T) {
	for _, o := range s.Objects(kind) {
		all = append(all, Decoded[T](o.Object))
	}
	return all
}

// WritesOf returns the writes of a user since a number of writes, except those of Leases and Events.
func WritesOf(w *storm.World, user string, since int) (all []sim.Write) {
	for _, write := range storm.Sent(w.Writes()[since:]) {
		if write.User == user {
			all = append(all, write)
		}
	}
	return all
}

// MostMachines keeps the largest number of machines from now on, those being deleted included.
func MostMachines(w *storm.World) *int {
	most, there := new(int), map[string]bool{}
	for _, m := range w.Objects(mcm.SchemeGroupVersion.WithResource("machines")) {
		there[m.GetName()] = true
	}
	w.AfterWrite(func(write sim.Write) error {
		switch {
		case write.Resource == "machines" && write.Verb == "create":
			there[write.Name] = true
		case write.Resource == "machines" && write.Effect == sim.Deleted:
			delete(there, write.Name)
		}
		*most = max(*most, len(there))
		return nil
	})
	return most
}
