// SPDX-License-Identifier: Apache-2.0

package app

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	api "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// serves answers discovery with these errors, one after the other, and the last one for ever.
type serves struct {
	discovery.DiscoveryInterface
	errs  []error
	asked int
}

func (s *serves) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	err := s.errs[min(s.asked, len(s.errs)-1)]
	s.asked++
	return &metav1.APIResourceList{}, err
}

var _ = Describe("The accounting of reserves", func() {
	missing := apierrors.NewNotFound(schema.GroupResource{}, "")
	ours, gardeners := &api.MachineDeployment{}, &api.MachineDeployment{}
	gardeners.Labels = map[string]string{"worker.gardener.cloud/pool": "p"}

	It("is that of the flag", func() {
		for mode, want := range map[string]api.Accounting{"additive": api.AccountingAdditive, "inclusive": api.AccountingInclusive} {
			a := &accounting{mode: mode}
			a.follow(context.Background(), func() { Fail("nothing is asked") })
			Expect([]api.Accounting{a.accountingOf(ours), a.accountingOf(gardeners)}).To(Equal([]api.Accounting{want, want}))
		}
	})

	It("is inclusive for what a Gardener writes, and additive for all else, as soon as that is known", func() {
		synctest.Test(suite, func(*testing.T) {
			s, changes := &serves{errs: []error{errors.New("no answer"), missing, missing, nil}}, 0
			a := &accounting{mode: "auto", discovery: s}
			go a.follow(context.Background(), func() { changes++ })
			synctest.Wait()
			Expect([]api.Accounting{a.accountingOf(ours), a.accountingOf(gardeners)}).To(Equal([]api.Accounting{"", ""}))
			time.Sleep(answerRetry)
			for _, want := range [][]api.Accounting{
				{api.AccountingAdditive, api.AccountingAdditive},
				{api.AccountingAdditive, api.AccountingAdditive},
				{api.AccountingAdditive, api.AccountingInclusive},
			} {
				synctest.Wait()
				Expect([]api.Accounting{a.accountingOf(ours), a.accountingOf(gardeners)}).To(Equal(want))
				time.Sleep(gardenerRetry)
			}
			Expect([]int{s.asked, changes}).To(Equal([]int{4, 2}))
		})
	})
})
