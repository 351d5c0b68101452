// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
)

// maxCached limits what is cached of one cluster, in bytes as weightOf counts them.
const maxCached = 32 << 20

var tooMuchCached = plan.Hold{Reason: "TooManyObjects", Message: "the cluster has more autoscalers and workloads than the hub reads from one cluster; the hub watches it again once its kubeconfig is replaced"}

// weight counts how much is cached of a cluster.
type weight struct {
	limit int
	full  func() // called once, when the limit is exceeded

	mu   sync.Mutex
	sum  int
	told bool
}

// part is what one cache contributes.
type part struct {
	of  *weight
	sum int
}

func (p *part) addBytes(n int) {
	w := p.of
	w.mu.Lock()
	p.sum += n
	w.sum += n
	tell := w.sum > w.limit && !w.told
	w.told = w.told || tell
	w.mu.Unlock()
	if tell {
		w.full()
	}
}

// release removes the weight of a cache that has ended.
func (p *part) release() { p.addBytes(-p.sum) }

// listen counts the objects of a cache, and passes on every object that is added, changed or
// deleted; of a changed one, both versions.
func (p *part) listen(tell func(items ...any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(item any) { p.addBytes(weightOf(item)); tell(item) },
		UpdateFunc: func(was, is any) { p.addBytes(weightOf(is) - weightOf(was)); tell(was, is) },
		DeleteFunc: func(item any) {
			item = handlers.LastState(item)
			p.addBytes(-weightOf(item))
			tell(item)
		},
	}
}

// weightOf estimates the size of an object in bytes.
func weightOf(item any) int {
	u, ok := unstructuredOf(item)
	if !ok {
		return 0
	}
	return weightOfValue(u.Object)
}

func weightOfValue(value any) int {
	const each = 32
	n := each
	switch v := value.(type) {
	case string:
		n += len(v)
	case map[string]any:
		for key, inner := range v {
			n += len(key) + weightOfValue(inner)
		}
	case []any:
		for _, inner := range v {
			n += weightOfValue(inner)
		}
	}
	return n
}
