// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/rsa"
	"io"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/utils/secrets"
	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestExtension(t *testing.T) {
	RegisterFailHandler(Fail)
	// Short keys are made in no time.
	secrets.GenerateKey = func(random io.Reader, _ int) (*rsa.PrivateKey, error) { return rsa.GenerateKey(random, 1024) }
	RunSpecs(t, "Extension")
}

const (
	namespace = "shoot--project--shop"
	header    = `"apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","kind":"EvenkeelConfig"`
	valid     = `{` + header + `,"pools":[{"name":"shop","excess":2}]}`
	another   = `{` + header + `,"pools":[{"name":"shop","excess":3}]}`
	wrong     = `{` + header + `,"pools":[{"name":"shpo","excess":2}]}`
	gardens   = "gardener/machine-controller-manager:v0.62.1"
)

func (s *shoot) reconcile(ctx context.Context) error { return s.Reconcile(ctx, logr.Discard(), s.ex) }

var _ = Describe("Reconcile", func() {
	It("accepts a valid configuration, and writes nothing else", func(ctx context.Context) {
		s := newShoot(ctx, valid)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.state(ctx).Config.Pools).To(ConsistOf(HaveField("Name", "shop")))
		Expect(s.condition(ctx)).To(And(HaveField("Type", ConditionAccepted), HaveField("Status", gardencorev1beta1.ConditionTrue)))
		Expect(s.image(ctx)).To(Equal(gardens))
		Expect(s.sim.Writes()).To(BeEmpty())
	})

	It("accepts no configuration at all", func(ctx context.Context) {
		s := newShoot(ctx, "")
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.state(ctx).Config.Pools).To(BeEmpty())
	})

	It("writes nothing if nothing has changed", func(ctx context.Context) {
		s := newShoot(ctx, valid)
		Expect(s.reconcile(ctx)).To(Succeed())
		s.reload(ctx)
		before := s.ex.ResourceVersion
		s.time.Step(time.Hour)
		Expect(s.reconcile(ctx)).To(Succeed())
		s.reload(ctx)
		Expect(s.ex.ResourceVersion).To(Equal(before))
	})

	It("keeps the last valid configuration, says what to write, and does not stop the Shoot", func(ctx context.Context) {
		s := newShoot(ctx, valid)
		Expect(s.reconcile(ctx)).To(Succeed())
		before := s.state(ctx)
		s.configure(ctx, wrong)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.state(ctx)).To(Equal(before))
		Expect(s.condition(ctx).Status).To(Equal(gardencorev1beta1.ConditionFalse))
		Expect(s.condition(ctx).Message).To(And(ContainSubstring("write one of shop"), ContainSubstring("the last valid providerConfig counts")))
		s.configure(ctx, another)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.state(ctx).Config.Pools[0].Excess.IntValue()).To(Equal(3))
		Expect(s.condition(ctx).Status).To(Equal(gardencorev1beta1.ConditionTrue))
	})

	DescribeTable("shows as much of a wrong configuration as a condition can hold", func(ctx context.Context, pools string) {
		s := newShoot(ctx, `{`+header+`,"pools":[`+pools+`]}`)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(len(s.condition(ctx).Message)).To(And(BeNumerically(">", 1000), BeNumerically("<", 16<<10)))
		Expect(s.condition(ctx).Message).To(And(HaveSuffix("runs without Evenkeel."), Not(ContainSubstring("\uFFFD"))))
	},
		Entry("many pools", strings.Repeat(`{"name":"shop"},`, 20_000)+`{"name":"shop"}`),
		Entry("a long name", `{"name":"`+strings.Repeat("ü", 400_000)+`","excess":2}`),
		Entry("a long name that is cut a byte later", `{"name":"x`+strings.Repeat("ü", 400_000)+`","excess":2}`),
		Entry("a long field", `{"name":"shop","`+strings.Repeat("x", 800_000)+`":2}`),
	)

	It("accepts nothing if the first configuration is wrong", func(ctx context.Context) {
		s := newShoot(ctx, wrong)
		Expect(s.reconcile(ctx)).To(Succeed())
		Expect(s.state(ctx)).To(BeNil())
		Expect(s.condition(ctx).Message).To(ContainSubstring("runs without Evenkeel"))
	})

	It("keeps what another seed has accepted", func(ctx context.Context) {
		s := newShoot(ctx, wrong)
		s.ex.Status.State = &runtime.RawExtension{Raw: []byte(`{"config":` + valid + `}`)}
		Expect(s.client.Status().Update(ctx, s.ex)).To(Succeed())
		Expect(s.Migrate(ctx, logr.Discard(), s.ex)).To(Succeed())
		Expect(s.Restore(ctx, logr.Discard(), s.ex)).To(Succeed())
		Expect(s.state(ctx).Config.Pools).To(ConsistOf(HaveField("Name", "shop")))
	})
})
