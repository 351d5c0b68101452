// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/evenkeel/evenkeel/internal/connect"
)

var _ = Describe("A kind that is awaited", func() {
	kind := schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}
	serves := func(names ...string) []*metav1.APIResourceList {
		list := &metav1.APIResourceList{GroupVersion: kind.GroupVersion().String()}
		for _, name := range names {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		return []*metav1.APIResourceList{list}
	}

	DescribeTable("is reported as missing until it is served", func(before []*metav1.APIResourceList) {
		synctest.Test(suite, func(t *testing.T) {
			defer GinkgoRecover()
			core := fake.NewClientset()
			core.Resources = before
			begun, missing := time.Now(), 0
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			Expect(connect.AwaitKind(ctx, core.Discovery(), kind, time.Minute, func() {
				if missing++; missing == 3 {
					core.Resources = serves("resourceclaims", "resourceslices")
				}
			})).To(BeTrue())
			Expect(time.Since(begun)).To(Equal(3 * time.Minute))
		})
	},
		Entry("without its group", nil),
		Entry("without the kind in its group", serves("resourceclaims")),
	)

	It("is not missing where the API server does not tell", func() {
		synctest.Test(suite, func(t *testing.T) {
			defer GinkgoRecover()
			core := fake.NewClientset()
			core.Resources = serves("resourceslices")
			asked := 0
			core.PrependReactor("get", "resource", func(clienttesting.Action) (bool, runtime.Object, error) {
				asked++
				return asked < 4, nil, apierrors.NewInternalError(errors.New("down"))
			})
			Expect(connect.AwaitKind(t.Context(), core.Discovery(), kind, time.Minute, func() { Fail("reported as missing") })).To(BeTrue())
			Expect(asked).To(Equal(4))
		})
	})
})
