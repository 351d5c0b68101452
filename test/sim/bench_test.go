// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"strconv"
	"testing"

	machineclient "github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	machineinformers "github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/evenkeel/evenkeel/test/fixture"
	"github.com/evenkeel/evenkeel/test/sim"
)

// BenchmarkUpdate is an update of one of 500 machines which three informers
// see; storms are made of these.
func BenchmarkUpdate(b *testing.B) {
	s := sim.New(sim.Options{})
	defer s.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := machineclient.NewForConfigOrDie(s.Config())
	all := client.MachineV1alpha1().Machines(fixture.Namespace)
	for range 3 {
		factory := machineinformers.NewSharedInformerFactory(client, 0)
		factory.Machine().V1alpha1().Machines().Informer()
		factory.Start(ctx.Done())
	}
	var names []string
	for i := range 500 {
		names = append(names, "machine-"+strconv.Itoa(i))
		if _, err := all.Create(ctx, fixture.Machine(names[i]), metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; b.Loop(); i++ {
		body := []byte(`{"metadata":{"annotations":{"n":"` + strconv.Itoa(i) + `"}}}`)
		if _, err := all.Patch(ctx, names[i%500], "application/merge-patch+json", body, metav1.PatchOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
