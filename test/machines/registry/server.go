// SPDX-License-Identifier: Apache-2.0

// Package registry serves images that it makes itself, as slowly as it is told to.
package registry

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// Line is what a connection to a registry is like. The zero value is without bounds.
type Line struct {
	// Bandwidth is in bytes per second, and Latency what each request waits.
	Bandwidth int64
	Latency   time.Duration
	// Down is whether every request fails.
	Down bool
}

// Server is a registry from which images can be pulled.
type Server struct {
	line atomic.Pointer[Line]

	program []byte

	making    sync.Mutex // one image is made at a time
	mu        sync.Mutex
	manifests map[string]blob // by name:tag and name@digest
	blobs     map[string]blob // by digest
	pulls     map[string]int  // of manifests, by name
}

// New returns a registry whose images run a program, which is a static executable.
func New(program []byte) *Server {
	s := &Server{program: program, manifests: map[string]blob{}, blobs: map[string]blob{}, pulls: map[string]int{}}
	s.line.Store(&Line{})
	return s
}

// sizes are the units of the sizes of images.
var sizes = map[string]int64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9}

var sized = regexp.MustCompile(`^([0-9]{1,6})([kmg]?)b/`)

// provide makes the image of a name, unless it is there. Its name says how large it is: 500mb/shop, 2gb/model. There
// are no others.
func (s *Server) provide(name, tag string) error {
	size := sized.FindStringSubmatch(name)
	if size == nil {
		return nil
	}
	s.making.Lock()
	defer s.making.Unlock()
	if s.find(s.manifests, name+":"+tag) != nil {
		return nil
	}
	n, err := strconv.ParseInt(size[1], 10, 64)
	if err != nil {
		return err
	}
	seed := fnv.New64a()
	seed.Write([]byte(name + ":" + tag))
	manifest, others, err := image{s.program, n * sizes[size[2]], seed.Sum64()}.blobs()
	if err != nil {
		return fmt.Errorf("make image %s:%s: %w", name, tag, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.manifests[name+":"+tag], s.manifests[name+"@"+manifest.digest] = manifest, manifest
	for _, b := range others {
		s.blobs[b.digest] = b
	}
	return nil
}

// Set changes the line to the registry, also for requests under way.
func (s *Server) Set(line Line) { s.line.Store(&line) }

// Pulls returns how often the manifest of an image has been read by its tag.
func (s *Server) Pulls(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pulls[name]
}

// ServeHTTP implements [http.Handler]: the part of OCI's distribution specification with which images are pulled.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	line := *s.line.Load()
	time.Sleep(line.Latency)
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	name, rest, isManifest := strings.Cut(path, "/manifests/")
	_, digest, isBlob := strings.Cut(path, "/blobs/")
	switch {
	case line.Down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case strings.Contains(path, "/private/") && !authorized(r):
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		http.Error(w, "unauthorized", http.StatusUnauthorized)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "images can only be pulled", http.StatusMethodNotAllowed)
	case r.URL.Path == "/v2/":
		w.WriteHeader(http.StatusOK)
	case isManifest:
		s.serve(w, r, s.manifest(name, rest))
	case isBlob:
		s.serve(w, r, s.find(s.blobs, digest))
	default:
		http.NotFound(w, r)
	}
}

// User and Password are the credentials for images with "private" in their names.
const User, Password = "user", "password"

func authorized(r *http.Request) bool {
	user, password, given := r.BasicAuth()
	return given && user == User && password == Password
}

// manifest returns that of an image by its tag, which makes it, or by its digest.
func (s *Server) manifest(name, reference string) *blob {
	if strings.Contains(reference, ":") {
		return s.find(s.manifests, name+"@"+reference)
	}
	if err := s.provide(name, reference); err != nil {
		klog.Background().Error(err, "Cannot make image")
	}
	s.mu.Lock()
	s.pulls[name]++
	s.mu.Unlock()
	return s.find(s.manifests, name+":"+reference)
}

func (s *Server) find(all map[string]blob, key string) *blob {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, found := all[key]; found {
		return &b
	}
	return nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, b *blob) {
	if b == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", b.kind)
	h.Set("Docker-Content-Digest", b.digest)
	h.Set("Content-Length", strconv.FormatInt(b.size, 10))
	if r.Method == http.MethodHead {
		return
	}
	_ = s.copySlowly(w, b.open())
}

// copySlowly copies with the bandwidth that the line has at that moment.
func (s *Server) copySlowly(to io.Writer, from io.Reader) error {
	chunk, begun, sent := make([]byte, 64<<10), time.Now(), int64(0)
	bandwidth := s.line.Load().Bandwidth
	for {
		n, err := from.Read(chunk)
		if _, err := to.Write(chunk[:n]); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line := s.line.Load()
		if line.Down {
			return errors.New("the registry is down")
		}
		if sent += int64(n); line.Bandwidth != bandwidth {
			begun, sent, bandwidth = time.Now(), 0, line.Bandwidth
		}
		if bandwidth > 0 {
			time.Sleep(time.Duration(float64(sent)/float64(bandwidth)*float64(time.Second)) - time.Since(begun))
		}
	}
}

// Listen serves on a port of loopback until stop is called.
func (s *Server) Listen() (port int, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, fmt.Errorf("listen for the registry: %w", err)
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	return l.Addr().(*net.TCPAddr).Port, func() { _ = server.Close() }, nil
}
