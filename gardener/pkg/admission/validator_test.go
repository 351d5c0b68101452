// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestAdmission(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Admission")
}

const (
	header = `"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig"`
	right  = `{` + header + `,"pools":[{"name":"shop","excess":2}]}`
	wrong  = `{` + header + `,"pools":[{"name":"shop","excess":10}]}`
	// unknown is wrong in a way whose message names the workers, upstream in one that names the version.
	unknown  = `{` + header + `,"pools":[{"name":"shelf","excess":1}]}`
	upstream = `{` + header + `,"autoscaler":"upstream"}`
)

// newShoot has another extension first.
func newShoot(config string, change ...func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
	s := &gardencorev1beta1.Shoot{Spec: gardencorev1beta1.ShootSpec{
		Provider: gardencorev1beta1.Provider{Workers: []gardencorev1beta1.Worker{{Name: "shop", Minimum: 3, Maximum: 9}}},
		Extensions: []gardencorev1beta1.Extension{
			{Type: "other", ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"pool":1}`)}},
			{Type: "evenkeel", ProviderConfig: &runtime.RawExtension{Raw: []byte(config)}},
		},
	}}
	for _, c := range change {
		c(s)
	}
	return s
}

// orNil is what the library gives for an object that did not exist.
func orNil(s *gardencorev1beta1.Shoot) client.Object {
	if s == nil {
		return nil
	}
	return s
}

func leaving(s *gardencorev1beta1.Shoot) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func disabled(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[1].Disabled = ptr.To(true) }

func bare(s *gardencorev1beta1.Shoot) { s.Spec.Extensions[1].ProviderConfig = nil }

func labelled(s *gardencorev1beta1.Shoot) { s.Labels = map[string]string{"a": "b"} }

func shrunk(s *gardencorev1beta1.Shoot) {
	s.Spec.Provider.Workers[0].Minimum, s.Spec.Provider.Workers[0].Maximum = 0, 1
}

func hibernated(s *gardencorev1beta1.Shoot) {
	s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: ptr.To(true)}
}

func alone(s *gardencorev1beta1.Shoot) { s.Spec.Extensions = s.Spec.Extensions[1:] }

func grown(s *gardencorev1beta1.Shoot) {
	s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, gardencorev1beta1.Worker{Name: "batch", Maximum: 1})
}

func ofVersion(version string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) { s.Spec.Kubernetes.Version = version }
}

func without(s *gardencorev1beta1.Shoot) { s.Spec.Extensions = s.Spec.Extensions[:1] }

var _ = Describe("Admission", func() {
	DescribeTable("accepts", func(ctx context.Context, object, old *gardencorev1beta1.Shoot) {
		Expect((&validator{}).Validate(ctx, object, orNil(old))).To(Succeed())
	},
		Entry("a new Shoot with a valid providerConfig", newShoot(right), nil),
		Entry("no providerConfig", newShoot("", bare), nil),
		Entry("a wrong one of an extension that is disabled", newShoot(wrong, disabled), nil),
		Entry("a Shoot without the extension", newShoot(wrong, without), nil),
		Entry("a change that corrects", newShoot(right), newShoot(wrong)),
		Entry("a change of labels beside a wrong providerConfig", newShoot(wrong, labelled), newShoot(wrong)),
		Entry("hibernation beside a providerConfig that was wrong before", newShoot(wrong, hibernated), newShoot(wrong)),
		Entry("an update of Kubernetes beside a providerConfig that was wrong before, and needs a later one", newShoot(upstream, ofVersion("1.34.0")), newShoot(upstream, ofVersion("1.33.9"))),
		Entry("another worker beside a providerConfig that was wrong before", newShoot(unknown, grown), newShoot(unknown)),
		Entry("the end of another extension beside a providerConfig that was wrong before", newShoot(wrong, alone), newShoot(wrong)),
		Entry("the deletion of a Shoot with a wrong providerConfig", newShoot(wrong, leaving), newShoot(wrong)),
		Entry("a maximum that leaves no room in a Shoot that is being deleted", newShoot(right, shrunk, leaving), newShoot(right, leaving)),
	)

	DescribeTable("refuses, with what to write,", func(ctx context.Context, object, old *gardencorev1beta1.Shoot, message string) {
		Expect((&validator{}).Validate(ctx, object, orNil(old))).To(MatchError(And(ContainSubstring("spec.extensions[1].providerConfig"), ContainSubstring(message))))
	},
		Entry("a new Shoot", newShoot(wrong), nil, "write at most 9"),
		Entry("a change", newShoot(wrong), newShoot(right), "write at most 9"),
		Entry("a change of one that was wrong in another way", newShoot(wrong), newShoot(`[]`), "write at most 9"),
		Entry("a wrong one of an extension that was disabled", newShoot(wrong), newShoot(wrong, disabled), "write at most 9"),
		Entry("a maximum that leaves no room", newShoot(right, shrunk), newShoot(right), "write at most 1"),
		Entry("an unknown field", newShoot(`{`+header+`,"pool":[]}`), nil, `unknown field "pool"`),
		Entry("what is no configuration", newShoot(`[]`), nil, "write an object"),
	)

	DescribeTable("answers the API server of the garden", func(ctx context.Context, config string, allowed bool) {
		switches := Switches()
		Expect(switches.Complete()).To(Succeed())
		all, err := switches.Completed().WebhooksFactory(fakeManager{})
		Expect(err).NotTo(HaveOccurred())
		Expect(all).To(HaveLen(1))
		Expect(all[0].ObjectSelector.MatchLabels).To(Equal(map[string]string{"extensions.extensions.gardener.cloud/evenkeel": "true"}))
		response := all[0].Webhook.Handler.Handle(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Kind: metav1.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: "Shoot"},
			Object: runtime.RawExtension{Raw: []byte(`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","metadata":{"name":"shop"},"spec":{
				"extensions":[{"type":"evenkeel","providerConfig":` + config + `}],"provider":{"workers":[{"name":"shop","minimum":3,"maximum":9}]}}}`)},
		}})
		Expect(response.Allowed).To(Equal(allowed), "%v", response.Result)
	},
		Entry("yes", right, true),
		Entry("no", wrong, false),
	)

	It("refuses what is no Shoot", func(ctx context.Context) {
		Expect((&validator{}).Validate(ctx, &corev1.Pod{}, nil)).NotTo(Succeed())
	})
})

// fakeManager is as much of a manager as a webhook needs.
type fakeManager struct{ manager.Manager }

func (fakeManager) GetScheme() *runtime.Scheme { return kubernetes.GardenScheme }

func (fakeManager) GetClient() client.Client { return nil }
