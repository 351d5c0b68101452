// SPDX-License-Identifier: Apache-2.0

package written_test

import (
	"fmt"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/evenkeel/evenkeel/pkg/written"
)

var _ = DescribeTable("A store at a version shows what was written", func(at, written_ string, want bool) {
	Expect(written.Reached(at, written_)).To(Equal(want))
},
	Entry("there", "10", "10", true),
	Entry("before", "100", "99", true),
	Entry("not later, by number and not by letter", "9", "10", false),
	Entry("nowhere that is known", "9", "", true),
	Entry("not while it shows nothing at all", "", "9", false),
	Entry("at a version that cannot be compared: to wait for it would never end", "10", "x7", true),
	Entry("before a version that cannot be compared", "x7", "10", true),
	Entry("at the same version that cannot be compared", "x7", "x7", true),
)

// node is an object at a version.
func node(uid string, version int) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID(uid), ResourceVersion: strconv.Itoa(version)}}
}

func newStore() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
}

// versionOf is what a cache returns for what was read at a version.
func versionOf(c *written.Cache[*corev1.Node], read *corev1.Node) string {
	return c.Newest(read).ResourceVersion
}

var _ = Describe("A cache of answers", func() {
	var store cache.Indexer
	var c *written.Cache[*corev1.Node]
	BeforeEach(func() {
		store = newStore()
		c = written.NewCache[*corev1.Node](store, nil)
		Expect(store.Add(node("one", 9))).To(Succeed())
	})

	It("takes the answer where the store is behind, and gives it up once it is not", func() {
		Expect(c.UpToDate(node("one", 9))).To(BeTrue(), "nothing was written")
		c.Record(node("one", 10))
		for range 2 {
			Expect(versionOf(c, node("one", 9))).To(Equal("10"))
			Expect(c.UpToDate(node("one", 9))).To(BeFalse())
		}
		Expect(store.Update(node("one", 100))).To(Succeed())
		Expect(c.UpToDate(node("one", 9))).To(BeFalse(), "the store shows it, and what was read before does not")
		Expect(c.UpToDate(node("one", 100))).To(BeTrue())
		Expect(versionOf(c, node("one", 9))).To(Equal("100"), "what was read has changed meanwhile")
		Expect(c.Len()).To(BeZero())
	})

	It("shows what was created, until the store does or has passed it", func() {
		created := node("two", 12)
		created.Name = "b"
		c.Record(node("one", 10))
		c.Record(created)
		for range 2 {
			Expect(c.Unseen()).To(ConsistOf(created), "the store shows an older version of the other")
			Expect(c.Newest(created)).To(BeIdenticalTo(created))
		}
		Expect(store.Add(created)).To(Succeed())
		Expect(c.Unseen()).To(BeEmpty())
		Expect(store.Delete(created)).To(Succeed())
		Expect(c.Unseen()).To(BeEmpty(), "it was deleted")
	})

	It("keeps the later of two answers, in whatever order they come", func() {
		c.Record(node("one", 12))
		c.Record(node("one", 10))
		Expect(versionOf(c, node("one", 9))).To(Equal("12"))
		c.Record(node("one", 13))
		Expect(versionOf(c, node("one", 9))).To(Equal("13"))
	})

	It("knows what others have read elsewhere", func() {
		c.Record(node("one", 10))
		Expect(versionOf(c, node("one", 11))).To(Equal("11"))
	})

	It("takes an object that was made anew as the store shows it", func() {
		c.Record(node("one", 10))
		Expect(store.Update(node("two", 12))).To(Succeed())
		Expect(versionOf(c, node("one", 9))).To(Equal("12"))
		Expect(c.UpToDate(node("two", 12))).To(BeTrue())
		Expect(c.Len()).To(BeZero())
	})

	It("forgets an object that is gone, also where the answer comes after its end", func() {
		c.Record(node("one", 10))
		Expect(store.Delete(node("one", 11))).To(Succeed())
		Expect(c.Len()).To(BeZero())
		c.Record(node("one", 10))
		Expect(c.Len()).To(BeZero())
	})

	It("does not wait for a write that a restore has undone: the store comes past its version", func() {
		c.Record(node("one", 12))
		Expect(c.UpToDate(node("one", 9))).To(BeFalse())
		store.Bookmark("12")
		Expect(versionOf(c, node("one", 9))).To(Equal("9"))
		Expect(c.UpToDate(node("one", 9))).To(BeTrue())
	})

	It("does not wait for a write that a restore has undone: the store goes back", func() {
		c.Record(node("one", 1200))
		Expect(store.Replace([]any{node("one", 7)}, "8")).To(Succeed())
		Expect(c.UpToDate(node("one", 7))).To(BeTrue())
		c.Record(node("one", 1200))
		Expect(store.Replace([]any{node("one", 3)}, "4")).To(Succeed())
		c.Record(node("one", 5))
		Expect(versionOf(c, node("one", 3))).To(Equal("5"), "a write after the restore is later than one before it")
	})

	It("does not wait for a version that cannot be compared", func() {
		odd := node("one", 0)
		odd.ResourceVersion = "x"
		c.Record(odd)
		Expect(c.UpToDate(node("one", 9))).To(BeTrue())
		Expect(c.Len()).To(BeZero())
	})

	It("reports what the store has not shown for long", func() {
		clock := testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		c = written.NewCache[*corev1.Node](store, clock)
		c.Record(node("one", 10))
		clock.SetTime(clock.Now().Add(time.Minute))
		Expect(c.Behind(time.Minute)).To(BeEmpty())
		clock.SetTime(clock.Now().Add(time.Second))
		Expect(c.Behind(time.Minute)).To(Equal("a"))
		Expect(store.Update(node("one", 10))).To(Succeed())
		Expect(c.Behind(time.Minute)).To(BeEmpty())
	})

	It("holds no more than twice what the store has yet to show, though it is never asked", func() {
		for i := range 10_000 {
			n := node("one", 2*i+10)
			n.Name = fmt.Sprint(i)
			c.Record(n)
			Expect(store.Delete(n)).To(Succeed())
		}
		Expect(written.Held(c)).To(BeNumerically("<=", 16))
	})
})

// server is one object of an API server, with a store that follows its events late.
type server struct {
	version int
	object  *corev1.Node
	made    int
	events  []func(cache.Indexer)
	store   cache.Indexer
	// ours is the version of our last write of the object that there is; zero after a restore or a deletion.
	ours int
}

// change begins a version, and has the store hear of it later.
func (s *server) change(object *corev1.Node) {
	before := s.object
	s.object = object
	at := s.version
	s.events = append(s.events, func(store cache.Indexer) {
		switch {
		case object != nil:
			_ = store.Update(object)
		case before != nil:
			gone := before.DeepCopy()
			gone.ResourceVersion = strconv.Itoa(at)
			_ = store.Delete(gone)
		default:
			store.Bookmark(strconv.Itoa(at))
		}
	})
}

func (s *server) write() *corev1.Node {
	if s.version++; s.object == nil {
		s.made++
	}
	s.change(node(fmt.Sprint(s.made), s.version))
	return s.object
}

func (s *server) read() *corev1.Node {
	item, _, _ := s.store.GetByKey("a")
	object, _ := item.(*corev1.Node)
	return object
}

func (s *server) deliver(n int) {
	for ; n > 0 && len(s.events) > 0; n-- {
		s.events[0](s.store)
		s.events = s.events[1:]
	}
}

var _ = It("A cache of answers is never older than the last write, and forgets in the end, whatever happens", func() {
	rapid.Check(GinkgoT(), func(t *rapid.T) {
		s := &server{version: 1, store: newStore()}
		c := written.NewCache[*corev1.Node](s.store, nil)
		highest := 0
		var late []*corev1.Node // answers under way
		var read *corev1.Node
		backup := *s
		t.Repeat(map[string]func(*rapid.T){
			"write": func(*rapid.T) {
				if s.object == nil {
					return
				}
				answer := s.write()
				s.ours = s.version
				c.Record(answer)
			},
			"write, and hear of it late": func(*rapid.T) { late = append(late, s.write()) },
			"hear": func(t *rapid.T) {
				if len(late) > 0 {
					c.Record(late[len(late)-1])
					late = late[:len(late)-1]
				}
			},
			"another writes": func(*rapid.T) { s.write() },
			"another object": func(*rapid.T) {
				s.version++
				at := strconv.Itoa(s.version)
				s.events = append(s.events, func(i cache.Indexer) { i.Bookmark(at) })
			},
			"delete":  func(*rapid.T) { s.delete() },
			"deliver": func(t *rapid.T) { s.deliver(rapid.IntRange(1, 3).Draw(t, "events")) },
			"read":    func(*rapid.T) { read = s.read() },
			"back up": func(*rapid.T) { backup = *s },
			"restore": func(*rapid.T) {
				highest = max(highest, s.version)
				*s = server{version: backup.version, object: backup.object, made: s.made + 1, store: s.store}
				s.relist()
				read, late = nil, nil
			},
			"": func(t *rapid.T) {
				highest = max(highest, s.version)
				if s.object == nil || read == nil || string(read.UID) != string(s.object.UID) {
					return
				}
				newest := c.Newest(read)
				if got, _ := strconv.Atoi(newest.ResourceVersion); got < s.ours || got > s.version && s.made == 0 {
					t.Fatalf("%d is older than our write at %d", got, s.ours)
				}
				if is := s.read(); is != nil && c.UpToDate(is) {
					if got, _ := strconv.Atoi(is.ResourceVersion); got < s.ours {
						t.Fatalf("%d counts as having seen our write at %d", got, s.ours)
					}
				}
			},
		})
		for s.version <= highest { // whatever else happens in the cluster
			s.version++
		}
		s.events = append(s.events, func(i cache.Indexer) { i.Bookmark(strconv.Itoa(s.version)) })
		s.deliver(len(s.events))
		if c.Len() != 0 {
			t.Fatalf("%d answers are held though the store shows everything", c.Len())
		}
		if is := s.read(); is != nil && (!c.UpToDate(is) || c.Newest(is) != is) {
			t.Fatalf("waits for ever at %s", is.ResourceVersion)
		}
	})
})

func (s *server) delete() {
	if s.object != nil {
		s.version++
		s.change(nil)
		s.ours = 0
	}
}

// relist is how a store learns of a restore.
func (s *server) relist() {
	var all []any
	if s.object != nil {
		all = append(all, s.object)
	}
	_ = s.store.Replace(all, strconv.Itoa(s.version))
	s.events = nil
}
