// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
)

var (
	now    = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	web    = plan.NewWish("shop", []string{"registry.example/web:v1"}, nil, "")
	job    = plan.NewWish("batch", []string{"job"}, nil, "")
	limits = plan.Limits{PerPool: 2, PerRegistry: 3, Bytes: 1000, Patience: 10 * time.Minute}
)

// pod is one for a wish, a minute old.
func pod(w plan.Wish, change ...func(*plan.Pod)) plan.Pod {
	p := plan.Pod{Namespace: w.Namespace, Name: "p-" + w.Key, UID: types.UID(w.Key), Wish: w.Key, Created: now.Add(-time.Minute)}
	for _, f := range change {
		f(&p)
	}
	return p
}

func done(p *plan.Pod)      { p.Done, p.Sizes = true, map[string]int64{p.Wish: 600} }
func measuring(p *plan.Pod) { p.Measuring = true }
func deleting(p *plan.Pod)  { p.Deleting = true }
func over(p *plan.Pod) {
	p.Over, p.Failure = true, &plan.Failure{Reason: plan.NoSpace, Message: "evicted"}
}
func failing(p *plan.Pod) { p.Failure = &plan.Failure{Reason: plan.NoAccess, Message: "no"} }
func sized(bytes int64) func(*plan.Pod) {
	return func(p *plan.Pod) { p.Sizes = map[string]int64{"image": bytes} }
}
func since(age time.Duration) func(*plan.Pod) {
	return func(p *plan.Pod) { p.Created = now.Add(-age) }
}

// held is a machine in reserve that can run pods.
func held(name string, pods ...plan.Pod) plan.Machine {
	return plan.Machine{UID: types.UID(name), Node: name, NodeUID: types.UID(name), Created: now.Add(-time.Hour), Held: true, Able: true, Pods: pods}
}

func released(name string, pods ...plan.Pod) plan.Machine {
	m := held(name, pods...)
	m.Held, m.Able = false, false
	return m
}

// tell describes a plan.
func tell(p plan.Plan) (words []string) {
	for _, c := range p.Creations {
		words = append(words, "create "+c.Wish.Namespace+" on "+c.Machine.Node)
	}
	for _, pod := range p.Deletions {
		words = append(words, "delete "+pod.Namespace)
	}
	return words
}

func progress(p plan.Plan, machine types.UID) string {
	is := p.Progress[machine]
	text := fmt.Sprintf("%d/%d", is.Done, is.Wishes)
	if is.Failure != nil {
		text += " " + string(is.Failure.Reason)
	}
	return text
}

var _ = DescribeTable("What is done on a machine", func(m plan.Machine, wishes []plan.Wish, want []string, state string) {
	p := plan.New(now, []plan.Pool{{Name: "pool", Wishes: wishes, Machines: []plan.Machine{m}}}, limits)
	Expect(tell(p)).To(Equal(want))
	Expect(progress(p, m.UID)).To(Equal(state))
},
	Entry("images are pulled where none are", held("a"), []plan.Wish{web}, []string{"create shop on a"}, "0/1"),
	Entry("one set after the other", held("a"), []plan.Wish{web, job}, []string{"create shop on a"}, "0/2"),
	Entry("the next one waits while one is pulled", held("a", pod(web)), []plan.Wish{web, job}, nil, "0/2"),
	Entry("the next one comes when one is there", held("a", pod(web, done)), []plan.Wish{web, job}, []string{"create batch on a"}, "1/2"),
	Entry("the next one comes where one fails", held("a", pod(web, failing)), []plan.Wish{web, job}, []string{"create batch on a"}, "0/2 NoAccess"),
	Entry("it is prepared when all are there", held("a", pod(web, done), pod(job, done)), []plan.Wish{web, job}, nil, "2/2"),
	Entry("nothing is pulled while its Node is not able to", func() plan.Machine { m := held("a"); m.Able = false; return m }(), []plan.Wish{web}, nil, "0/1"),
	Entry("what is not asked for any more goes", held("a", pod(job, done)), []plan.Wish{web}, []string{"create shop on a", "delete batch"}, "0/1"),
	Entry("all goes when it leaves the reserve, also in the middle of a pull", released("a", pod(web), pod(job, done)), []plan.Wish{web, job}, []string{"delete shop", "delete batch"}, "0/0"),
	Entry("all goes when nobody asks", held("a", pod(web, done)), nil, []string{"delete shop"}, "0/0"),
	Entry("one pod is enough", held("a", pod(web, done), pod(web)), []plan.Wish{web}, []string{"delete shop"}, "1/1"),
	Entry("a pod for other images of the same namespace is not one", held("a", pod(plan.NewWish("shop", []string{"old"}, nil, ""), done)), []plan.Wish{web}, []string{"create shop on a", "delete shop"}, "0/1"),
	Entry("what has ended goes if nobody asks for it any more", held("a", pod(job, over)), []plan.Wish{web}, []string{"create shop on a", "delete batch"}, "0/1"),
	Entry("a pod of another namespace is not one", held("a", pod(web, done, func(p *plan.Pod) { p.Namespace = "other" })), []plan.Wish{web}, []string{"create shop on a", "delete other"}, "0/1"),
	Entry("what is being deleted counts no more", held("a", pod(web, done, deleting)), []plan.Wish{web}, []string{"create shop on a"}, "0/1"),
	Entry("what is being deleted is not deleted again", released("a", pod(web, deleting)), []plan.Wish{web}, nil, "0/0"),
	Entry("what has ended stays for a while", held("a", pod(web, over)), []plan.Wish{web}, nil, "0/1 NoSpace"),
	Entry("what has ended is tried again", held("a", pod(web, over, since(5*time.Minute))), []plan.Wish{web}, []string{"delete shop"}, "0/1 NoSpace"),
	Entry("what was refused is not tried again at once", func() plan.Machine {
		m := held("a")
		m.Refused = map[string]plan.Failure{web.Key: {Reason: plan.Refused}}
		return m
	}(), []plan.Wish{web}, nil, "0/1 Refused"),
	Entry("nothing more is pulled where images have reached their limit", held("a", pod(web, done, sized(1000))), []plan.Wish{web, job}, nil, "1/2 LimitReached"),
	Entry("but below it", held("a", pod(web, done, sized(999))), []plan.Wish{web, job}, []string{"create batch on a"}, "1/2"),
	Entry("nothing more is pulled until it is known how large the images are", held("a", pod(web, done, measuring)), []plan.Wish{web, job}, nil, "1/2"),
	Entry("images of two sets add up", held("a", pod(web, done), pod(job, done)), []plan.Wish{web, job, plan.NewWish("c", []string{"c"}, nil, "")}, nil, "2/3 LimitReached"),
	Entry("an image of two sets counts once", held("a", pod(web, done, sized(600)), pod(job, done, sized(600))), []plan.Wish{web, job, plan.NewWish("c", []string{"c"}, nil, "")}, []string{"create c on a"}, "2/3"),
	Entry("patience ends", held("a", pod(web, since(10*time.Minute))), []plan.Wish{web}, nil, "0/1 TooSlow"),
	Entry("and not before", held("a", pod(web, since(10*time.Minute-time.Second))), []plan.Wish{web}, nil, "0/1"),
)

var _ = Describe("A plan", func() {
	Describe("with wishes that are offered", func() {
		offered := func(w plan.Wish) plan.Wish {
			w.Offered = true
			return w
		}
		first := func(m plan.Machine, l plan.Limits, wishes ...plan.Wish) ([]string, string) {
			p := plan.New(now, []plan.Pool{{Wishes: wishes, Machines: []plan.Machine{m}}}, l)
			return tell(p), progress(p, "a")
		}
		DescribeTable("lets them take nothing from the others", func(m plan.Machine, wishes []plan.Wish, want []string, state string) {
			did, is := first(m, limits, wishes...)
			Expect(did).To(Equal(want))
			Expect(is).To(Equal(state))
		},
			Entry("they come last", held("a"), []plan.Wish{offered(web), job}, []string{"create batch on a"}, "0/1"),
			Entry("they wait while another one is pulled", held("a", pod(job)), []plan.Wish{offered(web), job}, nil, "0/1"),
			Entry("they are pulled when all others are there, and count for nothing", held("a", pod(job, done)), []plan.Wish{offered(web), job}, []string{"create shop on a"}, "1/1"),
			Entry("they are pulled where another one fails", held("a", pod(job, failing)), []plan.Wish{offered(web), job}, []string{"create shop on a"}, "0/1 NoAccess"),
			Entry("no other one waits for them", held("a", pod(web)), []plan.Wish{offered(web), job}, []string{"create batch on a"}, "0/1"),
			Entry("no other one waits until it is known how large they are", held("a", pod(web, done, measuring)), []plan.Wish{offered(web), job}, []string{"create batch on a"}, "0/1"),
			Entry("they wait until that is known of all", held("a", pod(job, done, measuring)), []plan.Wish{offered(web), job}, nil, "1/1"),
			Entry("their failure is that of who asks", held("a", pod(web, failing)), []plan.Wish{offered(web)}, nil, "0/0"),
			Entry("they are not pulled beyond the limit", held("a", pod(job, done, sized(1000))), []plan.Wish{offered(web), job}, nil, "1/1"),
			Entry("they make room for others", held("a", pod(web, done, sized(1000))), []plan.Wish{offered(web), job}, []string{"create batch on a", "delete shop"}, "0/1"),
			Entry("only they do, and only those that are there", held("a", pod(job, done, sized(400)), pod(web, done, func(p *plan.Pod) { p.Sizes = map[string]int64{"other": 700} })), []plan.Wish{offered(web), job, plan.NewWish("third", []string{"c"}, nil, ""), offered(plan.NewWish("fourth", []string{"d"}, nil, ""))},
				[]string{"create third on a", "delete shop"}, "1/2"),
			Entry("but not as long as there is room", held("a", pod(web, done, sized(999))), []plan.Wish{offered(web), job}, []string{"create batch on a"}, "0/1"),
		)

		It("makes no room without a limit", func() {
			unlimited := limits
			unlimited.Bytes = 0
			did, _ := first(held("a", pod(web, done)), unlimited, offered(web), job)
			Expect(did).To(Equal([]string{"create batch on a"}))
		})

		It("pulls as many of them at once as of the others", func() {
			pool := plan.Pool{Wishes: []plan.Wish{offered(web), job}, Machines: []plan.Machine{
				held("a", pod(web)), held("b", pod(web)), held("c"), held("d"), held("e"), held("f", pod(job, done)),
			}}
			Expect(tell(plan.New(now, []plan.Pool{pool}, limits))).To(Equal([]string{"create batch on a", "create batch on b"}))
			pool.Machines = pool.Machines[1:]
			Expect(tell(plan.New(now, []plan.Pool{pool}, limits))).To(Equal([]string{"create batch on b", "create batch on c", "create shop on d"}))
		})

		It("keeps each wish once, and counts it as offered only if nobody else asks for it", func() {
			pool := plan.Pool{}
			pool.Add(web, true)
			pool.Add(job, false)
			pool.Add(web, true)
			Expect(pool.Wishes).To(Equal([]plan.Wish{offered(web), job}))
			pool.Add(web, false)
			pool.Add(job, true)
			Expect(pool.Wishes).To(Equal([]plan.Wish{web, job}))
		})

		It("prepares a machine with twenty wishes, and says if more are asked for", func() {
			wishes := func(n int, change func(plan.Wish) plan.Wish) (all []plan.Wish) {
				for i := range n {
					all = append(all, change(plan.NewWish(fmt.Sprint("n", i), []string{"image"}, nil, "")))
				}
				return all
			}
			same := func(w plan.Wish) plan.Wish { return w }
			all := wishes(plan.MaxWishes, same)
			var pods []plan.Pod
			for _, w := range all {
				pods = append(pods, pod(w, done, sized(1)))
			}
			did, is := first(held("a", pods...), limits, all...)
			Expect(did).To(BeEmpty())
			Expect(is).To(Equal("20/20"))
			did, is = first(held("a", pods...), limits, append([]plan.Wish{offered(web)}, all...)...)
			Expect(did).To(BeEmpty())
			Expect(is).To(Equal("20/20"))
			did, is = first(held("a", append(pods, pod(web))...), limits, append(all, web)...)
			Expect(did).To(Equal([]string{"delete shop"}))
			Expect(is).To(Equal("20/20 LimitReached"))
			pool := plan.Pool{Wishes: append(all, web), Machines: []plan.Machine{held("a")}}
			Expect(plan.New(now, []plan.Pool{pool}, limits).Progress["a"].Failure.Message).To(Equal("a machine is prepared with at most 20 sets of images: request fewer"))
			pool.Failure = &plan.Failure{Reason: plan.Invalid}
			Expect(progress(plan.New(now, []plan.Pool{pool}, limits), "a")).To(Equal("0/20 Invalid"))
		})
	})

	It("waits for no sizes if there is no limit", func() {
		unlimited := limits
		unlimited.Bytes = 0
		m := held("a", pod(web, done, measuring))
		Expect(tell(plan.New(now, []plan.Pool{{Wishes: []plan.Wish{web, job}, Machines: []plan.Machine{m}}}, unlimited))).To(ConsistOf("create batch on a"))
	})

	It("reports the size of images, and how long a pull takes", func() {
		said := func(m plan.Machine, wishes ...plan.Wish) string {
			return plan.New(now, []plan.Pool{{Wishes: wishes, Machines: []plan.Machine{m}}}, limits).Progress["a"].Failure.Message
		}
		Expect(said(held("a", pod(web, done, sized(1001))), web, job)).To(Equal("the images on a machine already have 1001 bytes, and --preparation-bytes is 1000: request fewer images, or raise it"))
		Expect(said(held("a", pod(web, since(time.Hour))), web)).To(Equal("pod shop/p-" + web.Key + " has been pulling images for more than 10m0s"))
	})

	It("has a limit of one byte", func() {
		tight := limits
		tight.Bytes = 1
		for _, m := range []plan.Machine{held("a", pod(web, done, sized(1))), held("a", pod(web, done, sized(0), measuring))} {
			Expect(tell(plan.New(now, []plan.Pool{{Wishes: []plan.Wish{web, job}, Machines: []plan.Machine{m}}}, tight))).To(BeEmpty())
		}
	})

	It("comes again when what has ended is tried again, or patience ends before", func() {
		again := func(pods ...plan.Pod) time.Duration {
			return plan.New(now, []plan.Pool{{Wishes: []plan.Wish{web, job}, Machines: []plan.Machine{held("a", pods...)}}}, limits).Again
		}
		Expect(again(pod(web, over))).To(Equal(4 * time.Minute))
		Expect(again(pod(web, over), pod(job, since(8*time.Minute)))).To(Equal(2 * time.Minute))
		Expect(again(pod(web, since(8*time.Minute)), pod(job))).To(Equal(2 * time.Minute))
		Expect(again(pod(web, over, since(time.Hour)))).To(BeNumerically("<=", time.Second))
	})

	It("looks at no machine for which nothing is asked, and at those for which it is not known", func() {
		Expect(plan.New(now, []plan.Pool{{Machines: []plan.Machine{held("a")}}}, limits).Progress).To(BeEmpty())
		p := plan.New(now, []plan.Pool{{Failure: &plan.Failure{Reason: plan.Invalid}, Machines: []plan.Machine{held("a")}}}, limits)
		Expect(progress(p, "a")).To(Equal("0/0 Invalid"))
		Expect(p.Progress["a"].Prepared()).To(BeFalse())
	})

	It("keeps pods of machines in reserve that may be asked for by what has not been read yet, one for a set of images", func() {
		one := plan.Pool{Unread: true, Wishes: []plan.Wish{web}, Machines: []plan.Machine{held("a", pod(web), pod(job), pod(job)), released("b", pod(web))}}
		Expect(tell(plan.New(now, []plan.Pool{one}, limits))).To(Equal([]string{"delete batch", "delete shop"}))
	})

	It("comes again when patience ends", func() {
		p := plan.New(now, []plan.Pool{{Wishes: []plan.Wish{web}, Machines: []plan.Machine{held("a", pod(web))}}}, limits)
		Expect(p.Again).To(Equal(9 * time.Minute))
	})

	It("shows a failure to read wishes on each machine, and goes on with those that are known", func() {
		failure := &plan.Failure{Reason: plan.WorkloadNotFound}
		p := plan.New(now, []plan.Pool{{Wishes: []plan.Wish{web}, Failure: failure, Machines: []plan.Machine{held("a"), released("b")}}}, limits)
		Expect(tell(p)).To(Equal([]string{"create shop on a"}))
		Expect(progress(p, "a")).To(Equal("0/1 WorkloadNotFound"))
		Expect(p.Progress).To(HaveLen(1))
	})

	It("has the oldest machines first", func() {
		young := held("0")
		young.Created = now
		p := plan.New(now, []plan.Pool{{Wishes: []plan.Wish{web}, Machines: []plan.Machine{young, held("b"), held("a")}}}, limits)
		Expect(tell(p)).To(Equal([]string{"create shop on a", "create shop on b"}))
	})

	It("pulls from one registry for several pools only as often as is allowed, and from others beside that", func() {
		var pools []plan.Pool
		for i := range 3 {
			pool := plan.Pool{Name: fmt.Sprint(i), Wishes: []plan.Wish{web}}
			if i == 2 {
				pool.Wishes = []plan.Wish{job}
			}
			for j := range 3 {
				pool.Machines = append(pool.Machines, held(fmt.Sprint(i, "-", j)))
			}
			pools = append(pools, pool)
		}
		p := plan.New(now, pools, limits)
		Expect(tell(p)).To(Equal([]string{"create shop on 0-0", "create shop on 0-1", "create shop on 1-0", "create batch on 2-0", "create batch on 2-1"}))
	})

	It("never pulls more at once than is allowed, and prepares all in the end", func() {
		for seed := range uint64(200) {
			random := rand.New(rand.NewPCG(seed, 1))
			wishes := []plan.Wish{web, job, plan.NewWish("third", []string{"registry.example/a", "other.example/b"}, nil, "")}
			pools := make([]plan.Pool, 3)
			for i := range pools {
				pools[i] = plan.Pool{Name: fmt.Sprint(i), Wishes: wishes[:1+random.IntN(3)]}
				for j := range random.IntN(8) {
					pools[i].Machines = append(pools[i].Machines, held(fmt.Sprint(i, "-", j)))
				}
			}
			all := func(yield func(*plan.Machine)) {
				for i := range pools {
					for j := range pools[i].Machines {
						yield(&pools[i].Machines[j])
					}
				}
			}
			for range 1000 {
				p := plan.New(now, pools, plan.Limits{PerPool: 2, PerRegistry: 3, Patience: time.Hour})
				for _, c := range p.Creations {
					all(func(m *plan.Machine) {
						if m.UID == c.Machine.UID {
							m.Pods = append(m.Pods, pod(c.Wish))
						}
					})
				}
				pulling := map[string]int{}
				for i := range pools {
					n := 0
					for _, m := range pools[i].Machines {
						own := 0
						for _, one := range m.Pods {
							if !one.Done {
								n, own = n+1, own+1
								for _, w := range wishes {
									if w.Key == one.Wish {
										for _, image := range w.Images {
											pulling[image[:min(len(image), 8)]]++
										}
									}
								}
							}
						}
						Expect(own).To(BeNumerically("<=", 1))
					}
					Expect(n).To(BeNumerically("<=", 2))
				}
				for _, n := range pulling {
					Expect(n).To(BeNumerically("<=", 3))
				}
				finished := true
				all(func(m *plan.Machine) {
					finished = finished && p.Progress[m.UID].Prepared()
					for k := range m.Pods {
						m.Pods[k].Done = m.Pods[k].Done || random.IntN(3) == 0
					}
				})
				if finished {
					break
				}
			}
			p := plan.New(now, pools, limits)
			Expect(tell(p)).To(BeEmpty())
			all(func(m *plan.Machine) { Expect(p.Progress[m.UID].Prepared()).To(BeTrue()) })
		}
	})
})

var _ = Describe("A wish", func() {
	It("is the same in any order, and another one for anything else", func() {
		images, secrets := []string{"b", "a", "b"}, []string{"y", "x"}
		w := plan.NewWish("n", images, secrets, "s")
		Expect(w).To(Equal(plan.NewWish("n", []string{"a", "b"}, []string{"x", "y", "x"}, "s")))
		Expect(images).To(Equal([]string{"b", "a", "b"}), "what it is made of stays")
		Expect(w.Key).To(HaveLen(16))
		for _, other := range []plan.Wish{
			plan.NewWish("m", images, secrets, "s"), plan.NewWish("n", images[:2:2], nil, "s"), plan.NewWish("n", images[1:2], secrets, "s"), plan.NewWish("n", images, secrets, ""),
		} {
			Expect(other.Key).NotTo(Equal(w.Key))
		}
	})

	DescribeTable("is pulled from the registries of its images", func(same bool, first, second string) {
		pools := []plan.Pool{
			{Name: "a", Wishes: []plan.Wish{plan.NewWish("a", []string{first}, nil, "")}, Machines: []plan.Machine{held("a")}},
			{Name: "b", Wishes: []plan.Wish{plan.NewWish("b", []string{second}, nil, "")}, Machines: []plan.Machine{held("b")}},
		}
		created := len(plan.New(now, pools, plan.Limits{PerPool: 1, PerRegistry: 1, Patience: time.Hour}).Creations)
		Expect(created == 1).To(Equal(same))
	},
		Entry("Docker's, without a host", true, "web", "library/web"),
		Entry("Docker's, by its name", true, "shop/web", "docker.io/web"),
		Entry("one on this computer", false, "localhost/web", "web"),
		Entry("one with a port", false, "host:5000/web", "web"),
		Entry("one with a domain", false, "registry.example/web", "web"),
		Entry("the same", true, "registry.example/web", "registry.example/job/x"),
		Entry("two", false, "registry.example/web", "other.example/web"),
	)

	It("counts once for a registry, however many images it has there", func() {
		pool := plan.Pool{Wishes: []plan.Wish{plan.NewWish("a", []string{"web", "job"}, nil, "")}, Machines: []plan.Machine{held("a"), held("b"), held("c")}}
		Expect(plan.New(now, []plan.Pool{pool}, plan.Limits{PerPool: 5, PerRegistry: 2, Patience: time.Hour}).Creations).To(HaveLen(2))
	})

	It("comes in its turn, and the list stays as it is", func() {
		third := plan.NewWish("third", []string{"c"}, nil, "")
		for _, wishes := range [][]plan.Wish{{third, web, job}, {job, third, web}} {
			wishes[2].Offered = true
			all := []plan.Wish{wishes[2], wishes[0], wishes[1]}
			given := slices.Clone(all)
			p := plan.New(now, []plan.Pool{{Wishes: given, Machines: []plan.Machine{held("a")}}}, limits)
			Expect(p.Creations[0].Wish.Key).To(Equal(wishes[0].Key))
			Expect(given).To(Equal(all))
		}
	})
})

var _ = DescribeTable("What a pod's status says", func(status corev1.PodStatus, done, over bool, reason plan.FailureReason) {
	isDone, isOver, failure := plan.Judge(&corev1.Pod{Status: status})
	Expect([]bool{isDone, isOver}).To(Equal([]bool{done, over}))
	if reason == "" {
		Expect(failure).To(BeNil())
		return
	}
	Expect(failure.Reason).To(Equal(reason))
	Expect(len(failure.Message)).To(And(BeNumerically(">", 0), BeNumerically("<", 320)))
},
	Entry("it has just been created", corev1.PodStatus{}, false, false, plan.FailureReason("")),
	Entry("it is being created", waiting("ContainerCreating", ""), false, false, plan.FailureReason("")),
	Entry("it runs", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}, true, false, plan.FailureReason("")),
	Entry("a manifest does not exist", waiting("ErrImagePull", `failed to pull and unpack image "r/x:1": r/x:1: not found`), false, false, plan.ImageNotFound),
	Entry("a registry wants a password", waiting("ImagePullBackOff", "failed to authorize: unexpected status from GET request: 401 Unauthorized"), false, false, plan.NoAccess),
	Entry("a disk is full", waiting("ErrImagePull", "write /var/lib: no space left on device, not found"), false, false, plan.NoSpace),
	Entry("a registry is down", waiting("ErrImagePull", "dial tcp: connection refused"), false, false, plan.PullFailed),
	Entry("there is only a reason", waiting("CreateContainerConfigError", ""), false, false, plan.PullFailed),
	Entry("a digest has the numbers of a status", waiting("ErrImagePull", "r/x@sha256:0401403: connection reset"), false, false, plan.PullFailed),
	Entry("containers are being made ready", waiting("PodInitializing", ""), false, false, plan.FailureReason("")),
	Entry("a container has yet to be seen", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{}}}, false, false, plan.FailureReason("")),
	Entry("a message is long", waiting("ErrImagePull", string(slices.Repeat([]byte("é"), 400))), false, false, plan.PullFailed),
	Entry("it was evicted", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on resource: ephemeral-storage"}, false, true, plan.NoSpace),
	Entry("it has ended", corev1.PodStatus{Phase: corev1.PodSucceeded}, false, true, plan.PullFailed),
)

var _ = DescribeTable("A failure is told apart by words", func(reason plan.FailureReason, messages ...string) {
	for _, message := range messages {
		_, _, failure := plan.Judge(&corev1.Pod{Status: waiting("ErrImagePull", message)})
		Expect(*failure).To(Equal(plan.Failure{Reason: reason, Message: message}))
	}
},
	Entry(nil, plan.NoSpace, "no space left on device", "Disk quota exceeded"),
	Entry(nil, plan.NoAccess, "401 Unauthorized", "403 Forbidden", "authorization failed", "pull access denied", "no basic auth credentials", "Unable to retrieve some image pull secrets (x)"),
	Entry(nil, plan.ImageNotFound, "not found", "manifest unknown", "name unknown", "couldn't parse image reference", "invalid reference format", "no match for platform in manifest"),
	Entry(nil, plan.PullFailed, "EOF"),
)

var _ = It("A failure without a message is its reason, and a long message is cut", func() {
	said := func(status corev1.PodStatus) plan.Failure {
		_, _, failure := plan.Judge(&corev1.Pod{Status: status})
		return *failure
	}
	Expect(said(waiting("InvalidImageName", ""))).To(Equal(plan.Failure{Reason: plan.ImageNotFound, Message: "InvalidImageName"}))
	Expect(said(corev1.PodStatus{Phase: corev1.PodFailed, Message: "out of pods"}).Message).To(Equal("out of pods"))
	for n, want := range map[int]string{300: strings.Repeat("x", 300), 301: strings.Repeat("x", 300) + "..."} {
		Expect(said(waiting("ErrImagePull", strings.Repeat("x", n))).Message).To(Equal(want))
	}
})

func waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}}
}
