// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// How long an answer of the API server holds: a right that is taken away ends that much later.
	admittedFor = time.Minute
	refusedFor  = 10 * time.Second
	// How long the API server may take.
	reviewTimeout = 5 * time.Second
	// maxCallers bounds what is remembered; readers of metrics are few.
	maxCallers = 100
)

// admission lets those through who have a token that the API server knows, and may get metrics.
type admission struct {
	reviews kubernetes.Interface
	clock   clock.PassiveClock

	mu sync.Mutex
	// known answers, by the hash of the token.
	known map[[sha256.Size]byte]answered
}

// answered: an HTTP status, and until when it holds.
type answered struct {
	status int
	until  time.Time
}

func newAdmission(reviews kubernetes.Interface, clock clock.PassiveClock) *admission {
	return &admission{reviews: reviews, clock: clock, known: map[[sha256.Size]byte]answered{}}
}

func (a *admission) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, shown := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !shown || token == "" {
			http.Error(w, "show a bearer token", http.StatusUnauthorized)
			return
		}
		if status := a.ask(r.Context(), token); status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ask remembers what the API server said, but not that it said nothing.
func (a *admission) ask(ctx context.Context, token string) int {
	key := sha256.Sum256([]byte(token))
	if status, ok := a.recall(key); ok {
		return status
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	status, err := a.review(ctx, token)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Could not find out who wants metrics")
		return http.StatusServiceUnavailable
	}
	a.remember(key, status)
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
	is, ok := a.known[key]
	return is.status, ok && a.clock.Now().Before(is.until)
}

func (a *admission) remember(key [sha256.Size]byte, status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxCallers {
		clear(a.known)
	}
	holds := refusedFor
	if status == http.StatusOK {
		holds = admittedFor
	}
	a.known[key] = answered{status, a.clock.Now().Add(holds)}
}
