// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"

	"github.com/evenkeel/evenkeel/gardener/charts"
	"github.com/evenkeel/evenkeel/gardener/pkg/additions"
	"github.com/evenkeel/evenkeel/test/audit"
)

// The last spec judges the requests of all others.
var _ = Describe("The extension", Ordered, ContinueOnFailure, func() {
	It("has one Shoot run Evenkeel, keeps its reserve, and leaves without the loss of a machine", func(ctx context.Context) {
		process := installExtension(ctx)
		By("a Shoot runs stock, and is given the extension")
		s := newShoot(ctx, "extension", stock, newPool("pool", 3, 9, "a"))
		Expect(s.reconciled(ctx)).To(Succeed())
		s.settles(ctx, 3)
		before := s.names(ctx)
		s.withWorkers(ctx)
		log := must(audit.Open(targetCluster.AuditLog()))
		defer log.Close()
		s.refused(log)
		s.enable(ctx, reserveOfTwo)
		applyManagedResource(ctx, s.namespace, additions.Name)
		Expect(imageOf(s.manager(ctx))).To(Equal(stock), "until gardenlet writes")
		s.gardenletReconciles(ctx)
		Expect(imageOf(s.manager(ctx))).To(Equal(ours))
		s.settles(ctx, 5)
		Expect(s.reserve(ctx)).To(Equal(2))
		Expect(s.gone(ctx, before)).To(Succeed())
		Expect(s.refused(log)).To(BeEmpty(), "no right is missing in the Shoot")

		By("gardenlet writes again, and nothing changes")
		was := s.manager(ctx)
		s.gardenletReconciles(ctx)
		Expect(s.manager(ctx).Spec).To(Equal(was.Spec))
		Expect(s.reserve(ctx)).To(Equal(2))

		By("a user changes what was added, and the next reconcile restores it")
		added := s.added(ctx)
		s.spoilAdded(ctx)
		Expect(s.added(ctx)).NotTo(Equal(added))
		s.enable(ctx, reserveOfTwo)
		Expect(s.added(ctx)).To(Equal(added))

		By("the operator updates the extension, and with it the image")
		names := s.names(ctx)
		overwriteImages()
		Expect(process.Restart()).To(Succeed())
		awaitReady(ctx, extensionProgram)
		Expect(imageOf(s.manager(ctx))).To(Equal(ours), "until gardenlet writes")
		s.gardenletReconciles(ctx)
		Expect(imageOf(s.manager(ctx))).To(Equal(newer))
		s.settles(ctx, 5)
		Expect(s.names(ctx)).To(ConsistOf(names))
		Expect(s.reserve(ctx)).To(Equal(2))

		By("a wrong providerConfig comes past admission")
		s.enable(ctx, config(`[{"name":"pol","excess":2}]`))
		Expect(s.extension(ctx).Status.Conditions).To(ConsistOf(And(HaveField("Status", gardencorev1beta1.ConditionFalse), HaveField("Message", ContainSubstring("write one of pool")))))
		s.gardenletReconciles(ctx)
		Expect(s.reserve(ctx)).To(Equal(2))

		By("the owner wants less")
		s.enable(ctx, config(`[{"name":"pool","excess":1}]`))
		s.gardenletReconciles(ctx)
		s.settles(ctx, 4)
		Expect(s.reserve(ctx)).To(Equal(1))

		By("gardenlet writes while the webhook is down: the Shoot runs stock, and all its machines stay")
		machines := s.names(ctx)
		Expect(process.Stop()).To(Succeed())
		s.deploy(ctx, 1)
		Expect(imageOf(s.manager(ctx))).To(Equal(stock))
		s.settles(ctx, 4)
		Expect(s.gone(ctx, machines)).To(Succeed())
		Expect(process.Start()).To(Succeed())
		awaitReady(ctx, extensionProgram)
		s.gardenletReconciles(ctx)
		Expect(imageOf(s.manager(ctx))).To(Equal(newer))
		s.settles(ctx, 4)
		Eventually(func() int { return s.reserve(ctx) }).WithContext(ctx).Should(Equal(1))

		By("Gardener's parsers read what has been logged")
		Expect(s.kubelet.running()[0].unparsed()).To(BeEmpty())
		Expect(unparsedByExtensions(process)).To(BeEmpty())

		By("the owner removes the extension")
		serving := namesOf(s.serving(ctx))
		Expect(serving).To(HaveLen(3))
		s.disable(ctx, 1)
		Expect(imageOf(s.manager(ctx))).To(Equal(stock))
		Expect(s.manager(ctx).Spec.Template.Spec.Containers[0].Command).NotTo(ContainElement(ContainSubstring("accounting")))
		Expect(s.reserve(ctx)).To(BeZero())
		Expect(s.everything(ctx)).NotTo(HaveKey(ContainSubstring("evenkeel")), "what was added is gone")
		Expect(s.deployments(ctx)).To(HaveEach(HaveField("Annotations", Not(HaveKey(machine.DrainReserveAnnotation)))))
		s.gardenletReconciles(ctx)
		s.settles(ctx, 3)
		Expect(s.gone(ctx, serving)).To(Succeed())
	})

	It("hibernates a Shoot with a reserve, wakes it up with one, and leaves a Shoot that sleeps", func(ctx context.Context) {
		installExtension(ctx)
		s := newReservedShoot(ctx, "sleeper")

		By("it hibernates")
		s.enable(ctx, reserveOfTwo)
		Expect(s.hibernate(ctx)).To(Succeed())
		Expect(s.machines(ctx)).To(BeEmpty())

		By("gardenlet reconciles it in its sleep")
		s.enable(ctx, reserveOfTwo)
		s.deploy(ctx, 0)
		s.writeWorker(ctx)
		Expect(s.reconciled(ctx)).To(Succeed())
		Expect(imageOf(s.manager(ctx))).To(Equal(ours))
		Expect(s.manager(ctx).Spec.Replicas).To(HaveValue(BeZero()))

		By("it wakes up")
		s.enable(ctx, reserveOfTwo)
		Expect(s.wake(ctx)).To(Succeed())
		s.settles(ctx, 4)
		Expect(s.reserve(ctx)).To(Equal(2))

		By("it hibernates again, and its owner removes the extension")
		Expect(s.hibernate(ctx)).To(Succeed())
		s.disable(ctx, 0)
		Expect(imageOf(s.manager(ctx))).To(Equal(stock))
		Expect(s.manager(ctx).Spec.Replicas).To(HaveValue(BeZero()))
		s.writeWorker(ctx)
		Expect(s.wake(ctx)).To(Succeed())
		s.settles(ctx, 2)
		Expect(s.reserve(ctx)).To(BeZero())
	})

	It("changes three of ten Shoots, and no byte of the other seven", func(ctx context.Context) {
		shoots := tenShoots(ctx)
		installExtension(ctx)
		var before []map[string]string
		for _, s := range shoots {
			before = append(before, s.everything(ctx))
		}
		since := auditSize()
		for i, s := range shoots {
			if !isNeighbour(i) {
				s.enable(ctx, reserveOfTwo)
			}
			s.gardenletWrites(ctx)
		}
		for i, s := range shoots {
			if isNeighbour(i) {
				Expect(differences(before[i], s.everything(ctx))).To(BeEmpty(), s.namespace)
				continue
			}
			Expect(imageOf(s.manager(ctx))).To(Equal(ours), s.namespace)
			Expect(s.worker.Spec.Pools[0].Annotations).To(Equal(map[string]string{machine.BoundsAnnotation: "3:9:2"}))
		}
		Expect(sentToWebhooks(since)).To(Equal(map[string]bool{shoots[2].namespace: true, shoots[5].namespace: true, shoots[8].namespace: true}),
			"not even asked about another")
	})

	It("keeps the reserve of a Shoot that moves to another seed", movesToAnotherSeed)

	It("keeps room for a CapacityBuffer while its owner wants that, and leaves the buffer alone after", keepsRoom)

	It("changes the accounting of a reserve, and back, without a machine created or lost", changesAccounting)

	It("says of all wrong configurations what to write, and the Shoot goes on as before", saysWhatIsWrong)

	It("takes over what its first version has left, and works on what a later one has accepted", takesOver)

	It("has two replicas that answer, one of which leads", hasTwoReplicas)

	It("is reached with old and new certificates when it renews them in time", renewsCertificates)

	It("leaves a Shoot alone that has Evenkeel from the image vector, and is refused what others may once and not for ever", hasEvenkeelByVector)

	DescribeTable("leaves a Shoot as gardenlet writes it", func(ctx context.Context, name string, outage outage) {
		extension := installExtension(ctx)
		s := writeShoot(ctx, name, stock, newPool("pool", 3, 9, "a"))
		s.withWorkers(ctx)
		s.gardenletWrites(ctx)
		deployment, worker := s.manager(ctx).Spec, s.worker.Spec
		s.enable(ctx, reserveOfTwo)
		s.gardenletWrites(ctx)
		changedDeployment, changedWorker := s.manager(ctx).Spec, s.worker.Spec
		Expect(changedDeployment).NotTo(Equal(deployment))
		Expect(changedWorker).NotTo(Equal(worker))

		By("the webhook does not answer for both writes")
		over := outage(ctx, extension)
		quickly(func() { s.deploy(ctx, 1) })
		quickly(func() { s.writeWorker(ctx) })
		Expect(s.manager(ctx).Spec).To(Equal(deployment))
		Expect(s.worker.Spec).To(Equal(worker))

		By("it answers again for the second")
		over()
		s.writeWorker(ctx)
		Expect(s.manager(ctx).Spec).To(Equal(deployment))
		Expect(s.worker.Spec).To(Equal(changedWorker))

		By("and for both")
		s.gardenletWrites(ctx)
		Expect(s.manager(ctx).Spec).To(Equal(changedDeployment))
		Expect(s.worker.Spec).To(Equal(changedWorker))

		By("it answers for the first only")
		s.deploy(ctx, 1)
		over = outage(ctx, extension)
		quickly(func() { s.writeWorker(ctx) })
		Expect(s.manager(ctx).Spec).To(Equal(changedDeployment))
		Expect(s.worker.Spec).To(Equal(worker))

		By("the Shoot leaves afterwards")
		quickly(func() { s.deploy(ctx, 1) })
		Expect(s.manager(ctx).Spec).To(Equal(deployment))
		over()
	},
		Entry("while the webhook is down", "down", outage(down)),
		Entry("while the webhook takes requests and does not answer", "slow", outage(slow)),
		Entry("while the certificate of the webhook is expired", "expired", outage(expired)),
	)

	It("is reached with a certificate of its authority, so that only its age is the reason above", func(ctx context.Context) {
		extension := installExtension(ctx)
		s := writeShoot(ctx, "valid", stock, newPool("pool", 3, 9, "a"))
		s.withWorkers(ctx)
		s.enable(ctx, reserveOfTwo)
		comeBack := down(ctx, extension)
		server := newImpostor(ctx, time.Hour)
		s.gardenletWrites(ctx)
		server.Close()
		Expect(server.requests.Load()).NotTo(BeZero())
		Expect(imageOf(s.manager(ctx))).To(Equal(stock), "an answer that is none changes nothing either")
		comeBack()
	})

	It("is reached again when all its certificates were replaced", func(ctx context.Context) {
		extension := installExtension(ctx)
		s := writeShoot(ctx, "rotated", stock, newPool("pool", 3, 9, "a"))
		s.withWorkers(ctx)
		s.enable(ctx, reserveOfTwo)
		before := authority(ctx)
		comeBack := down(ctx, extension)
		Expect(seed.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(extensionNamespace))).To(Succeed())
		comeBack()
		Eventually(func() string {
			s.gardenletWrites(ctx)
			return imageOf(s.manager(ctx))
		}).WithContext(ctx).Should(Equal(ours))
		Expect(authority(ctx).CertificatePEM).NotTo(Equal(before.CertificatePEM))
	})

	It("runs an unmodified cluster-autoscaler where its manager serves it, and never without, in every order of writes", func(ctx context.Context) {
		playUpstream(ctx, installExtension(ctx))
	})

	if upstreamBinary != "none" {
		It("has an unmodified cluster-autoscaler scale a Shoot, and the fork come back", func(ctx context.Context) {
			installExtension(ctx)
			playAutoscaler(ctx)
		})
	}

	It("was refused nothing, and has no right that it does not use", func() {
		Expect(rightsProblems(extensionProgram, extensionNamespace, extensionExcuses, charts.Extension)).To(BeEmpty())
	})
})
