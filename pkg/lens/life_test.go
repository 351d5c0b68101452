// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"net/http"
	"testing/synctest"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/lens"
)

// asking is a transport that notes the resourceVersions that lists ask for.
type asking struct {
	http.RoundTripper
	versions []string
}

func (a *asking) RoundTrip(request *http.Request) (*http.Response, error) {
	if query := request.URL.Query(); query.Get("watch") == "" {
		a.versions = append(a.versions, query.Get("resourceVersion"))
	}
	return a.RoundTripper.RoundTrip(request)
}

var _ = Describe("An informer (L4.6)", func() {
	It("begins with what is stored, and otherwise gets what it asks for", func() {
		inWorld(1, func(w lensWorld) {
			a := &asking{RoundTripper: w.server.Client("ours")}
			config := w.server.Config()
			config.Transport = a
			machines := lens.New(w, versioned.NewForConfigOrDie(config), lens.Options{}).MachineV1alpha1().Machines(ns)
			stored := w.create(machine("a")).ResourceVersion
			for _, version := range []string{"0", "", stored} {
				_, err := machines.List(w, metav1.ListOptions{ResourceVersion: version})
				Expect(err).NotTo(HaveOccurred())
			}
			Expect(a.versions).To(Equal([]string{"", "", stored}))
		})
	})
})

var _ = Describe("Once stopped (L7.1)", func() {
	It("everything is refused, with an object that has a name to read", func() {
		inWorld(1, func(w lensWorld) {
			made := w.create(machine("a"))
			before := len(w.server.Writes())
			w.stop()
			for verb, call := range map[string]func() (*v1alpha1.Machine, error){
				"create":        func() (*v1alpha1.Machine, error) { return w.machines().Create(w, unnamed(), metav1.CreateOptions{}) },
				"update":        func() (*v1alpha1.Machine, error) { return w.machines().Update(w, made, metav1.UpdateOptions{}) },
				"update status": func() (*v1alpha1.Machine, error) { return w.machines().UpdateStatus(w, made, metav1.UpdateOptions{}) },
				"patch": func() (*v1alpha1.Machine, error) {
					return w.machines().Patch(w, "a", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
				},
				"get":    func() (*v1alpha1.Machine, error) { return w.machines().Get(w, "a", metav1.GetOptions{}) },
				"delete": func() (*v1alpha1.Machine, error) { return made, w.machines().Delete(w, "a", metav1.DeleteOptions{}) },
			} {
				result, err := call()
				Expect(err).To(MatchError(lens.ErrStopped), verb)
				Expect(result).NotTo(BeNil(), verb)
			}
			Expect(w.server.Writes()).To(HaveLen(before))
		})
	})

	It("no list and no write waits any longer", func() {
		inWorld(1, func(w lensWorld) {
			w.server.Hold("machines")
			begun := time.Now()
			done := make(chan error)
			go func() {
				w.create(machine("a")) // has taken effect: it is not reported as failed
				_, err := w.informers.Machines().Lister().List(labels.Everything())
				done <- err
			}()
			synctest.Wait()
			w.stop()
			Expect(<-done).To(MatchError(lens.ErrStopped))
			Expect(time.Since(begun)).To(BeZero())
		})
	})
})

// count is how often a metric was counted or observed, over all its labels.
func (w lensWorld) count(name string) (sum float64) {
	families, err := w.metrics.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			sum += observed(m)
		}
	}
	return sum
}

func observed(m *dto.Metric) float64 {
	if h := m.GetHistogram(); h != nil {
		return float64(h.GetSampleCount())
	}
	return m.GetCounter().GetValue()
}
