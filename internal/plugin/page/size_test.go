// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/evenkeel/evenkeel/internal/plugin/size"
	"github.com/evenkeel/evenkeel/internal/sizing"
)

// sizer is a handler that finds sizes in this way, for browsers that have the key.
func sizer(find func(ctx context.Context, namespace, name string) (size.Answer, error)) http.Handler {
	server := New("test", Source{Size: find}, clock.RealClock{}, time.Millisecond)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.AddCookie(&http.Cookie{Name: server.key.cookie(), Value: string(server.key)})
		server.handler().ServeHTTP(w, r)
	})
}

func get(ctx context.Context, from http.Handler, path string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	from.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+path, nil))
	return recorder
}

// slow is a browser that is sent a page until a deadline.
type slow struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (s *slow) SetWriteDeadline(at time.Time) error {
	s.deadline = at
	return nil
}

// three is an answer: three machines are enough.
func three(note string) size.Answer {
	enough := sizing.Point{Policy: sizing.Fixed(3), Outcome: sizing.Outcome{ReserveHours: 30, Pods: 7}, Wait: 1}
	return size.Answer{
		MachineDeployment: "pool", TimeZone: "Etc/UTC", Start: noon.AddDate(0, 0, -7), End: noon, Pods: 7, Percentile: 99, WaitSeconds: 5,
		Points: []sizing.Point{{Policy: sizing.Fixed(0), Wait: 150}, enough}, Amount: &enough, Notes: []string{note},
		Reserve: &size.Manifest{Kind: "Reserve", Metadata: size.Metadata{Name: "pool"}},
	}
}

var _ = Describe("The page of a size", func() {
	It("shows the answer, and both pictures of it without finding it once more", func(ctx context.Context) {
		found := 0
		s := sizer(func(_ context.Context, namespace, name string) (size.Answer, error) {
			found++
			return three(fmt.Sprintf("of %s/%s </li><b>", namespace, name)), nil
		})
		page := get(ctx, s, "/size/garden/pool")
		Expect(page.Code).To(Equal(http.StatusOK))
		Expect(page.Body.String()).To(And(
			ContainSubstring("Keep 3 machines at any time"), ContainSubstring("of garden/pool &lt;/li&gt;&lt;b&gt;"), ContainSubstring(`<th scope="row">3</th>`),
			ContainSubstring("kind: Reserve"), ContainSubstring(`src="/size/garden/pool/frontier.svg"`), ContainSubstring(`src="/size/garden/pool/week.svg"`),
			Not(ContainSubstring("data-stream")),
		))
		for _, name := range []string{"frontier.svg", "week.svg"} {
			picture := get(ctx, s, "/size/garden/pool/"+name)
			Expect(picture.Code).To(Equal(http.StatusOK))
			Expect(picture.Header().Get("Content-Type")).To(Equal("image/svg+xml"))
			Expect(picture.Header().Get("Content-Security-Policy")).To(HavePrefix("default-src 'none'"))
			Expect(picture.Body.String()).To(HavePrefix("<svg "))
		}
		Expect(found).To(Equal(1))
		get(ctx, s, "/size/garden/other/week.svg")
		Expect(found).To(Equal(2), "of another one nothing was known")
		get(ctx, s, "/size/elsewhere/other/week.svg")
		Expect(found).To(Equal(3), "nor of one of that name in another namespace")
	})

	It("explains why there is no answer, and reports that a MachineDeployment does not exist", func(ctx context.Context) {
		wrong := errors.New("how long does a machine boot?")
		s := sizer(func(context.Context, string, string) (size.Answer, error) { return size.Answer{}, wrong })
		Expect(get(ctx, s, "/size/garden/pool").Body.String()).To(ContainSubstring("how long does a machine boot?"))
		Expect(get(ctx, s, "/size/garden/pool/week.svg").Code).To(Equal(http.StatusInternalServerError))
		Expect(get(ctx, s, "/size/garden/pool/month.svg").Code).To(Equal(http.StatusNotFound))
		wrong = size.ErrNotFound
		page := get(ctx, s, "/size/garden/pool")
		Expect(page.Code).To(Equal(http.StatusNotFound))
		Expect(page.Body.String()).To(ContainSubstring("There is no MachineDeployment pool"))
		Expect(get(ctx, s, "/size/garden/pool/week.svg").Code).To(Equal(http.StatusNotFound))
		Expect(get(ctx, sizer(nil), "/size/garden/pool").Code).To(Equal(http.StatusNotFound))
	})

	It("is sent however long it took to find it", bubble(func() {
		s := sizer(func(_ context.Context, _, name string) (size.Answer, error) {
			time.Sleep(time.Hour)
			return three(name), nil
		})
		browser := &slow{ResponseRecorder: httptest.NewRecorder()}
		s.ServeHTTP(browser, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/size/garden/pool", nil))
		Expect(browser.deadline).To(Equal(time.Now().Add(writeTimeout)))
	}))

	It("is found one at a time, and no longer than a browser waits (law 9)", bubble(func() {
		running, most := 0, 0
		s := sizer(func(ctx context.Context, _, name string) (size.Answer, error) {
			running++
			most = max(most, running)
			defer func() { running-- }()
			select {
			case <-ctx.Done():
				return size.Answer{}, ctx.Err()
			case <-time.After(time.Minute):
				return three(name), nil
			}
		})
		begin, ended := time.Now(), make(chan string)
		for i, patience := range []time.Duration{50 * time.Second, 100 * time.Second, 170 * time.Second} {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				get(ctx, s, fmt.Sprintf("/size/garden/pool-%d", i))
				ended <- fmt.Sprintf("%d after %s", i, time.Since(begin))
			}()
			synctest.Wait()
		}
		Expect([]string{<-ended, <-ended, <-ended}).To(Equal([]string{"0 after 50s", "1 after 1m40s", "2 after 2m40s"}))
		Expect(most).To(Equal(1))
	}))
})
