// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestRegistry(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Registry")
}

func get(s *Server, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// pull reads an image as containerd does, checks all digests, and returns the names and sizes of its files.
func pull(s *Server, name, tag string) map[string]int64 {
	GinkgoHelper()
	answer := get(s, "/v2/"+name+"/manifests/"+tag)
	Expect(answer.Code).To(Equal(http.StatusOK))
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	Expect(json.Unmarshal(answer.Body.Bytes(), &manifest)).To(Succeed())
	again := get(s, "/v2/"+name+"/manifests/"+answer.Header().Get("Docker-Content-Digest"))
	Expect(again.Body.Bytes()).To(Equal(answer.Body.Bytes()))
	files := map[string]int64{}
	for _, d := range append(manifest.Layers, manifest.Config) {
		blob := get(s, "/v2/"+name+"/blobs/"+d.Digest).Body.Bytes()
		sum := sha256.Sum256(blob)
		Expect("sha256:" + hex.EncodeToString(sum[:])).To(Equal(d.Digest))
		Expect(blob).To(HaveLen(int(d.Size)))
		if d.MediaType != layerType {
			continue
		}
		for archive := tar.NewReader(bytes.NewReader(blob)); ; {
			h, err := archive.Next()
			if err == io.EOF {
				break
			}
			Expect(err).NotTo(HaveOccurred())
			files[h.Name] = h.Size
		}
	}
	return files
}

var _ = Describe("The registry", func() {
	It("has images of the size that their names say, and no others", func() {
		s := New([]byte("program"))
		Expect(pull(s, "0b/work", "1")).To(Equal(map[string]int64{"program": 7}))
		Expect(pull(s, "3kb/work", "1")).To(Equal(map[string]int64{"program": 7, "content": 3000}))
		Expect(pull(s, "1mb/deep/work", "v2")).To(HaveKeyWithValue("content", int64(1e6)))
		for _, path := range []string{"/v2/work/manifests/1", "/v2/mb/work/manifests/1", "/v2/0b/work/blobs/sha256:none", "/v2/0b/work/manifests/sha256:none", "/elsewhere"} {
			Expect(get(s, path).Code).To(Equal(http.StatusNotFound), path)
		}
		Expect(get(s, "/v2/").Code).To(Equal(http.StatusOK))
		Expect(s.Pulls("0b/work")).To(Equal(1))
	})

	It("has private images for those who have the password", func() {
		s := New(nil)
		for _, path := range []string{"/v2/0b/private/work/manifests/1", "/v2/0b/private/work/blobs/sha256:none"} {
			answer := get(s, path)
			Expect(answer.Code).To(Equal(http.StatusUnauthorized))
			Expect(answer.Header().Get("WWW-Authenticate")).To(HavePrefix("Basic "))
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.SetBasicAuth(User, "guess")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			Expect(w.Code).To(Equal(http.StatusUnauthorized))
		}
		r := httptest.NewRequest(http.MethodGet, "/v2/0b/private/work/manifests/1", nil)
		r.SetBasicAuth(User, Password)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		Expect(w.Code).To(Equal(http.StatusOK))
	})

	It("has other content for another tag, and the same for the same", func() {
		digest := func(s *Server, tag string) string {
			return get(s, "/v2/3kb/work/manifests/"+tag).Header().Get("Docker-Content-Digest")
		}
		a, b := New([]byte("program")), New([]byte("program"))
		Expect(digest(a, "1")).To(Equal(digest(b, "1")))
		Expect(digest(a, "1")).NotTo(Equal(digest(a, "2")))
	})

	It("takes no pushes, and nothing while it is down", func() {
		s := New(nil)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v2/0b/work/blobs/uploads/", nil))
		Expect(w.Code).To(Equal(http.StatusMethodNotAllowed))
		s.Set(Line{Down: true})
		Expect(get(s, "/v2/0b/work/manifests/1").Code).To(Equal(http.StatusServiceUnavailable))
	})
})

// TestSlow is not a spec: specs do not run in a bubble of time.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(nil)
		var manifest struct{ Layers []descriptor }
		if err := json.Unmarshal(get(s, "/v2/10mb/work/manifests/1").Body.Bytes(), &manifest); err != nil {
			t.Fatal(err)
		}
		s.Set(Line{Bandwidth: 1e6, Latency: time.Second})
		begin := time.Now()
		get(s, "/v2/10mb/work/blobs/"+manifest.Layers[1].Digest)
		if took := time.Since(begin); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("10 MB at 1 MB/s with a second of latency took %v", took)
		}
	})
}
