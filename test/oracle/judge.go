// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Verdict is how an implementation compares with stock in one story.
type Verdict struct {
	Story Story
	// Differences have stock on the left.
	Differences Differences
	// Stock is what stock did on the way.
	Stock Seen
	// Worse are promises that it broke on the way more often than stock did, and acts after which it
	// came to rest much later.
	Worse []string
}

// Same reports whether the end was the same, and the way no worse.
func (v Verdict) Same() bool { return len(v.Differences) == 0 && len(v.Worse) == 0 }

// String returns the story and what differs.
func (v Verdict) String() string {
	return v.Story.String() + "\n" + v.Differences.String() + strings.Join(v.Worse, "\n")
}

// slower returns the acts after which there was rest much later than in stock, for example because
// nothing but a timer woke the implementation.
func slower(stock, other Ending) (acts []string) {
	for i := range min(len(stock.Rests), len(other.Rests)) {
		if usual, took := stock.Rests[i].Took, other.Rests[i].Took; took > 2*usual+time.Minute {
			acts = append(acts, fmt.Sprintf("act %d, %s: rest after %v, in stock after %v", i+1, other.Rests[i].Act, took, usual))
		}
	}
	return acts
}

// attempts is how often stock is played at most where its end depends on chance.
const attempts = 60

// Judge plays a story with stock and with another implementation, and compares them. If chance decides
// in stock, the other must end like one of some plays of stock.
func Judge(t *testing.T, story Story, other Implementation) (v Verdict) {
	t.Helper()
	ending := Play(t, story, other)
	for n := range attempts {
		stock := playStock(t, story)
		one := Verdict{Story: story, Stock: stock.Seen, Differences: Compare(stock, ending)}
		if story.Weather == 0 {
			one.Worse = slices.Concat(ending.Seen.Worse(stock.Seen), slower(stock, ending))
		}
		equal := len(one.Differences) == 0
		if n == 0 || equal {
			v = one
		}
		if equal || story.Chance == "" {
			break
		}
	}
	return v
}

// remembered are endings of stock, by story.
var remembered sync.Map

// playStock plays a story with stock, once for each story unless chance decides.
func playStock(t *testing.T, story Story) Ending {
	t.Helper()
	key := fmt.Sprint(story.Weather, story)
	if ending, found := remembered.Load(key); found {
		return ending.(Ending)
	}
	ending := Play(t, story, Stock)
	if story.Chance == "" {
		remembered.Store(key, ending)
	}
	return ending
}
