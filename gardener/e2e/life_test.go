// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	secretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager"

	"github.com/evenkeel/evenkeel/gardener/pkg/additions"
	"github.com/evenkeel/evenkeel/gardener/pkg/mutation"
)

// changesAccounting plays a Shoot with a reserve whose owner changes its accounting, and changes it back.
func changesAccounting(ctx context.Context) {
	installExtension(ctx)
	s := newReservedShoot(ctx, "counted")
	machines, serving := s.names(ctx), namesOf(s.serving(ctx))
	counts := func(accounting string, replicas int32) {
		GinkgoHelper()
		s.enable(ctx, strings.Replace(reserveOfTwo, `"pools"`, `"accounting":"`+accounting+`","pools"`, 1))
		s.gardenletReconciles(ctx)
		Expect(s.manager(ctx).Spec.Template.Spec.Containers[0].Command).To(ContainElement("--reserve-accounting=" + strings.ToLower(accounting)))
		Eventually(func() int32 { return s.deployments(ctx)[0].Spec.Replicas }).WithContext(ctx).Should(Equal(replicas))
		s.settles(ctx, 4)
		Expect(s.deployments(ctx)[0].Spec.Replicas).To(Equal(replicas))
		Expect(s.reserve(ctx)).To(Equal(2))
		Expect(s.names(ctx)).To(ConsistOf(machines))
		Expect(namesOf(s.serving(ctx))).To(ConsistOf(serving))
	}
	counts("Inclusive", 4)
	counts("Additive", 2)
	counts("Inclusive", 4)
}

// renewsCertificates plays certificates that come of age while the extension runs.
func renewsCertificates(ctx context.Context) {
	extension := installExtension(ctx)
	s := writeShoot(ctx, "renewed", stock, newPool("pool", 3, 9, "a"))
	s.withWorkers(ctx)
	s.enable(ctx, reserveOfTwo)
	before := authority(ctx)
	writes := func() {
		GinkgoHelper()
		s.gardenletWrites(ctx)
		Expect(imageOf(s.manager(ctx))).To(Equal(ours), "each write is changed")
	}
	writes()

	By("nine tenths of the time are over, and the leader looks at the certificates")
	age(ctx)
	Expect(extension.Restart()).To(Succeed())
	awaitReady(ctx, extensionProgram)
	writes()
	Eventually(func() []byte { return authority(ctx).CertificatePEM }).WithContext(ctx).ShouldNot(Equal(before.CertificatePEM))
	after := authority(ctx)
	Eventually(func() bool {
		trusted := trustedAuthorities(ctx)
		return bytes.Contains(trusted, bytes.TrimSpace(before.CertificatePEM)) && bytes.Contains(trusted, bytes.TrimSpace(after.CertificatePEM))
	}).WithContext(ctx).Should(BeTrue(), "the API server trusts the old and the new authority")
	writes()

	By("the webhook serves the new certificate, which it reads every five minutes and when it starts")
	Expect(extension.Restart()).To(Succeed())
	awaitReady(ctx, extensionProgram)
	Expect(served(after.CertificatePEM)).To(Succeed())
	Expect(served(before.CertificatePEM)).NotTo(Succeed())
	writes()
}

// age has all certificates of the extension be 27 days old, of 30.
func age(ctx context.Context) {
	GinkgoHelper()
	var list corev1.SecretList
	Expect(seed.List(ctx, &list, client.InNamespace(extensionNamespace), client.MatchingLabels{secretsmanager.LabelKeyManagedBy: secretsmanager.LabelValueSecretsManager})).To(Succeed())
	Expect(list.Items).NotTo(BeEmpty())
	for i := range list.Items {
		secret := &list.Items[i]
		patch := client.MergeFrom(secret.DeepCopy())
		secret.Labels[secretsmanager.LabelKeyIssuedAtTime] = daysFromNow(-27)
		secret.Labels[secretsmanager.LabelKeyValidUntilTime] = daysFromNow(3)
		Expect(seed.Patch(ctx, secret, patch)).To(Succeed())
	}
}

func daysFromNow(days int) string {
	return strconv.FormatInt(time.Now().AddDate(0, 0, days).Unix(), 10)
}

// trustedAuthorities are those whose certificates the API server accepts from the webhook.
func trustedAuthorities(ctx context.Context) []byte {
	GinkgoHelper()
	var registration admissionregistrationv1.MutatingWebhookConfiguration
	Expect(seed.Get(ctx, client.ObjectKey{Name: extensionProgram}, &registration)).To(Succeed())
	return registration.Webhooks[0].ClientConfig.CABundle
}

// served is an error if the certificate of the webhook is not of an authority.
func served(authority []byte) error {
	GinkgoHelper()
	pool := x509.NewCertPool()
	Expect(pool.AppendCertsFromPEM(authority)).To(BeTrue())
	connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", must(seedCluster.Port(extensionProgram))), &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
	if err != nil {
		return err
	}
	return connection.Close()
}

// What the first version of the extension has left behind: it knew neither Reserves nor CapacityBuffers. The one after this version
// knows more.
const (
	firstImage = evenkeel + ":v0.0.0-first"
	firstState = `{"config":{"kind":"EvenkeelConfig","apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","pools":[{"name":"pool","excess":2}],"accounting":"Inclusive","autoscaler":"fork"}}`
	laterState = `{"config":{"kind":"EvenkeelConfig","apiVersion":"evenkeel.extensions.gardener.cloud/v1alpha1","pools":[{"name":"pool","excess":2,"shade":"dark"}],"hue":"red"},"era":2}`
)

// takesOver plays an update from the first version of the extension, and a return from a later one.
func takesOver(ctx context.Context) {
	extension := installExtension(ctx)
	s := writeShoot(ctx, "older", stock, newPool("pool", 3, 9, "a"))
	s.withWorkers(ctx)
	s.enable(ctx, reserveOfTwo)
	s.gardenletWrites(ctx)
	deployment, worker, added := s.manager(ctx), s.worker.Spec, s.added(ctx)

	By("everything is as the first version has left it")
	Expect(extension.Stop()).To(Succeed())
	s.accepted(ctx, firstState)
	s.leftByFirstVersion(ctx)
	Expect(extension.Start()).To(Succeed())
	awaitReady(ctx, extensionProgram)
	Expect(imageOf(s.manager(ctx))).To(Equal(firstImage), "until gardenlet writes")

	By("gardenlet reconciles the Shoot")
	s.enable(ctx, reserveOfTwo)
	s.gardenletWrites(ctx)
	Expect(s.manager(ctx).Spec).To(Equal(deployment.Spec))
	Expect(s.manager(ctx).Annotations).To(Equal(deployment.Annotations))
	Expect(s.worker.Spec).To(Equal(worker))
	Expect(s.added(ctx)).To(Equal(added))

	By("the state is that of a later version")
	s.accepted(ctx, laterState)
	Eventually(func() string { return string(s.extension(ctx).Status.State.Raw) }).WithContext(ctx).Should(ContainSubstring("hue"))
	Consistently(func() string {
		s.gardenletWrites(ctx)
		return imageOf(s.manager(ctx))
	}, 3*time.Second).WithContext(ctx).Should(Equal(ours))
	Expect(s.worker.Spec).To(Equal(worker))
	s.enable(ctx, reserveOfTwo)
	Expect(string(s.extension(ctx).Status.State.Raw)).NotTo(BeEmpty())
}

// accepted writes the state of the Extension.
func (s *shoot) accepted(ctx context.Context, state string) {
	GinkgoHelper()
	ex := s.extension(ctx)
	patch := client.MergeFrom(ex.DeepCopy())
	ex.Status.State = &runtime.RawExtension{Raw: []byte(state)}
	Expect(seed.Status().Patch(ctx, ex, patch)).To(Succeed())
}

// leftByFirstVersion has the Shoot have what the first version knew.
func (s *shoot) leftByFirstVersion(ctx context.Context) {
	GinkgoHelper()
	d := s.manager(ctx)
	patch := client.MergeFrom(d.DeepCopy())
	container := &d.Spec.Template.Spec.Containers[0]
	container.Image, d.Annotations[mutation.ImageAnnotation] = firstImage, firstImage
	last := len(container.Command) - 1
	Expect(container.Command[last]).To(HavePrefix("--controllers="))
	container.Command = container.Command[:last]
	Expect(seed.Patch(ctx, d, patch)).To(Succeed())
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: additions.ReservesName}}
	Expect(seed.Delete(ctx, binding)).To(Succeed())
	dashboard := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: additions.DashboardName}}
	Expect(seed.Patch(ctx, dashboard, client.RawPatch(types.MergePatchType, []byte(`{"data":{"evenkeel.json":"{}"}}`)))).To(Succeed())
}

// saysWhatIsWrong plays all wrong configurations past admission.
func saysWhatIsWrong(ctx context.Context) {
	installExtension(ctx)
	s := writeShoot(ctx, "careless", stock, newPool("pool", 3, 9, "a"))
	s.cluster.Shoot.Spec.Kubernetes.Version = "1.34.0"
	s.withWorkers(ctx)
	s.gardenletWrites(ctx)
	goesOn := func(wrong, instead string) {
		GinkgoHelper()
		deployment, worker := s.manager(ctx).Spec, s.worker.Spec
		s.enable(ctx, wrong)
		Expect(s.extension(ctx).Status.Conditions).To(ConsistOf(And(
			HaveField("Status", gardencorev1beta1.ConditionFalse), HaveField("Message", And(MatchRegexp("write|remove|must"), HaveSuffix(instead))))), wrong)
		s.gardenletWrites(ctx)
		Expect(s.manager(ctx).Spec).To(Equal(deployment), wrong)
		Expect(s.worker.Spec).To(Equal(worker), wrong)
	}

	By("there was no other before")
	for _, wrong := range wrongConfigs() {
		goesOn(wrong, "Until it is corrected, the Shoot runs without Evenkeel.")
	}
	Expect(imageOf(s.manager(ctx))).To(Equal(stock))

	By("there was a right one before")
	s.enable(ctx, reserveOfTwo)
	s.gardenletWrites(ctx)
	Expect(imageOf(s.manager(ctx))).To(Equal(ours))
	for _, wrong := range wrongConfigs() {
		goesOn(wrong, "Until it is corrected, the last valid providerConfig counts.")
	}

	By("it is corrected")
	s.enable(ctx, reserveOfTwo)
	Expect(s.extension(ctx).Status.Conditions).To(ConsistOf(HaveField("Status", gardencorev1beta1.ConditionTrue)))
}
