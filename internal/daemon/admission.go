// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// How long an answer of the API server is cached: a right that is withdrawn ends that much
	// later.
	admittedFor = time.Minute
	refusedFor  = 10 * time.Second
	// How long an admitted token, and its source address, count as regular.
	regularFor = time.Hour
	// How long the API server may take.
	reviewTimeout = 5 * time.Second
	// maxCallers limits each cache. There are few readers of metrics.
	maxCallers = 100
	// How many new tokens per second are reviewed, and how many at once: from regular addresses,
	// and as many from all others. Each review takes two requests. ReviewQPS leaves more than half
	// of all requests to regular tokens.
	newTokensQPS, newTokensBurst = 1, 4
)

// ReviewQPS and ReviewBurst are the limits that the client of reviews needs.
const ReviewQPS, ReviewBurst = 10, 40

// admission admits callers with a token that the API server knows and that may get metrics. Unknown
// tokens, however many, do not keep out known ones: new tokens are reviewed at a limited rate, and
// others are refused at once.
type admission struct {
	reviews kubernetes.Interface
	clock   clock.PassiveClock
	// Limits for reviews of new tokens, by source. A reader with a renewed token has a regular
	// address.
	regulars, strangers flowcontrol.PassiveRateLimiter

	mu sync.Mutex
	// admitted and refused are answers by the hash of the token. They are separate, so that
	// refusals do not displace regular tokens.
	admitted, refused answers[[sha256.Size]byte]
	// addresses are the regular addresses.
	addresses answers[string]
}

// answered is an HTTP status, and until when it is valid.
type answered struct {
	status int
	until  time.Time
}

// answers contains at most maxCallers entries. A new one displaces the one that expires first.
type answers[K comparable] map[K]answered

func (a answers[K]) remember(key K, is answered) {
	if _, known := a[key]; !known && len(a) >= maxCallers {
		first := key
		for other, is := range a {
			if first == key || is.until.Before(a[first].until) {
				first = other
			}
		}
		delete(a, first)
	}
	a[key] = is
}

func newAdmission(reviews kubernetes.Interface, clock clock.PassiveClock) *admission {
	limiter := func() flowcontrol.PassiveRateLimiter {
		return flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(newTokensQPS, newTokensBurst, clock)
	}
	return &admission{
		reviews: reviews, clock: clock, regulars: limiter(), strangers: limiter(),
		admitted: answers[[sha256.Size]byte]{}, refused: answers[[sha256.Size]byte]{}, addresses: answers[string]{},
	}
}

func (a *admission) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, shown := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !shown || token == "" {
			http.Error(w, "show a bearer token", http.StatusUnauthorized)
			return
		}
		from, _, _ := net.SplitHostPort(r.RemoteAddr) // an empty address is an address like any other
		if status := a.statusFor(r.Context(), token, from); status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// statusFor returns the cached answer of the API server, or asks. It does not cache a failure to
// answer.
func (a *admission) statusFor(ctx context.Context, token, from string) int {
	key := sha256.Sum256([]byte(token))
	if status, ok := a.recall(key); ok {
		return status
	}
	if !a.mayAsk(key, from) {
		return http.StatusTooManyRequests
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	status, err := a.review(ctx, token)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot review a request for metrics")
		return http.StatusServiceUnavailable
	}
	a.remember(key, from, status)
	return status
}

func (a *admission) review(ctx context.Context, token string) (int, error) {
	who, err := a.reviews.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user, extra := who.Status.User, map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := a.reviews.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: metricsPath, Verb: "get"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("review access of %s: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

func (a *admission) recall(key [sha256.Size]byte) (int, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, known := range []answers[[sha256.Size]byte]{a.admitted, a.refused} {
		if is, ok := known[key]; ok && a.clock.Now().Before(is.until) {
			return is.status, true
		}
	}
	return 0, false
}

// mayAsk reports whether the API server may be asked about a token now.
func (a *admission) mayAsk(key [sha256.Size]byte, from string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	if is, ok := a.admitted[key]; ok && now.Sub(is.until) < regularFor {
		return true
	}
	if is, ok := a.addresses[from]; ok && now.Before(is.until) {
		return a.regulars.TryAccept()
	}
	return a.strangers.TryAccept()
}

func (a *admission) remember(key [sha256.Size]byte, from string, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	if status != http.StatusOK {
		delete(a.admitted, key)
		a.refused.remember(key, answered{status, now.Add(refusedFor)})
		return
	}
	a.admitted.remember(key, answered{status, now.Add(admittedFor)})
	a.addresses.remember(from, answered{status, now.Add(regularFor)})
}
