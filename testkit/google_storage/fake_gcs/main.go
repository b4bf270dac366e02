// A server of Google's Cloud Storage with one bucket and one account, for clients of its XML API. fake-gcs-server keeps
// the objects in memory, gives them generations, and refuses what is not of the generation asked for. It lacks parts of
// the XML API, and they are here: puts with a condition in a header, uploads in parts, lists from a name on, and accounts.
package main

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

// All parts but the last have so many bytes at least, as at Google.
const partBytesMin = 5 << 20

// What Google calls an error, by status.
var codes = map[int]string{
	http.StatusBadRequest:         "InvalidArgument",
	http.StatusUnauthorized:       "AuthenticationRequired",
	http.StatusNotFound:           "NoSuchBucket",
	http.StatusPreconditionFailed: "PreconditionFailed",
	http.StatusNotImplemented:     "NotImplemented",
}

type server struct {
	store   *fakestorage.Server
	account *rsa.PublicKey
	mutex   sync.Mutex
	uploads map[string]map[int][]byte // parts by number, of each upload that goes on
	begun   int
}

type part struct {
	PartNumber int
	ETag       string
}

type list struct {
	XMLName        xml.Name `xml:"ListBucketResult"`
	CommonPrefixes []prefix
	Contents       []object
}

type prefix struct{ Prefix string }

type object struct {
	Key          string
	Generation   int64
	LastModified string
	ETag         string
	Size         int64
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	bucket, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case !s.isSigned(r):
		refuse(w, http.StatusUnauthorized)
	case name == "" && r.Method == http.MethodGet:
		s.list(w, bucket, query)
	case r.Header.Get("x-goog-copy-source") != "":
		refuse(w, http.StatusNotImplemented)
	case r.Method == http.MethodPost && query.Has("uploads"):
		s.begin(w)
	case r.Method == http.MethodPut && query.Has("uploadId"):
		s.take(w, r, query)
	case r.Method == http.MethodPost && query.Has("uploadId"):
		s.complete(w, r, bucket, name, query.Get("uploadId"))
	case r.Method == http.MethodDelete && query.Has("uploadId"):
		s.end(query.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut:
		if etag := s.put(w, r.Header, bucket, name, r.Body); etag != "" {
			w.WriteHeader(http.StatusOK)
		}
	default: // it reads, or it deletes
		s.store.HTTPHandler().ServeHTTP(w, r)
	}
}

// isSigned tells whether the account's key has signed the token, a JWT (RFC 7519) that a client makes itself.
func (s *server) isSigned(r *http.Request) bool {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	at := strings.LastIndex(token, ".")
	if at < 0 {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(token[at+1:])
	digest := sha256.Sum256([]byte(token[:at]))
	return err == nil && rsa.VerifyPKCS1v15(s.account, crypto.SHA256, digest[:], signature) == nil
}

func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", codes[status])
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/xml")
	if err := xml.NewEncoder(w).Encode(body); err != nil {
		log.Print(err)
	}
}

// put hands an object to the store with the condition of its headers, and returns its tag, or has refused.
func (s *server) put(w http.ResponseWriter, headers http.Header, bucket, name string, content io.Reader) string {
	query := url.Values{"uploadType": {"media"}, "name": {name}}
	if generation := headers.Get("x-goog-if-generation-match"); generation != "" {
		query.Set("ifGenerationMatch", generation)
	}
	path := fmt.Sprintf("/upload/storage/v1/b/%s/o?%s", bucket, query.Encode())
	stored := httptest.NewRecorder()
	s.store.HTTPHandler().ServeHTTP(stored, httptest.NewRequest(http.MethodPost, path, content))
	var told struct{ Etag, Generation string }
	if stored.Code != http.StatusOK || json.Unmarshal(stored.Body.Bytes(), &told) != nil {
		refuse(w, stored.Code)
		return ""
	}
	w.Header().Set("ETag", quoted(told.Etag))
	w.Header().Set("x-goog-generation", told.Generation)
	return told.Etag
}

func (s *server) list(w http.ResponseWriter, bucket string, query url.Values) {
	options := fakestorage.ListOptions{Prefix: query.Get("prefix"), Delimiter: query.Get("delimiter")}
	if after := query.Get("start-after"); after != "" {
		options.StartOffset = after + "\x00" // the store begins with the name itself
	}
	found, err := s.store.ListObjectsWithOptionsPaginated(bucket, options)
	if err != nil {
		refuse(w, http.StatusNotFound)
		return
	}
	var names list
	for _, each := range found.Prefixes {
		names.CommonPrefixes = append(names.CommonPrefixes, prefix{each})
	}
	for _, each := range found.Objects {
		modified := each.Updated.UTC().Format("2006-01-02T15:04:05.000Z07:00")
		names.Contents = append(names.Contents, object{each.Name, each.Generation, modified, quoted(each.Etag), each.Size})
	}
	answer(w, names)
}

func (s *server) begin(w http.ResponseWriter) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.begun++
	upload := strconv.Itoa(s.begun)
	s.uploads[upload] = map[int][]byte{}
	answer(w, struct {
		XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
		UploadId string
	}{UploadId: upload})
}

func (s *server) take(w http.ResponseWriter, r *http.Request, query url.Values) {
	content, err := io.ReadAll(r.Body)
	number, wrong := strconv.Atoi(query.Get("partNumber"))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	parts := s.uploads[query.Get("uploadId")]
	if parts == nil || errors.Join(err, wrong) != nil {
		refuse(w, http.StatusBadRequest)
		return
	}
	parts[number] = content
	w.Header().Set("ETag", tag(content))
}

func (s *server) complete(w http.ResponseWriter, r *http.Request, bucket, name, upload string) {
	var told struct{ Part []part }
	if err := xml.NewDecoder(r.Body).Decode(&told); err != nil || len(told.Part) == 0 {
		refuse(w, http.StatusBadRequest)
		return
	}
	parts := s.end(upload)
	var content bytes.Buffer
	for at, each := range told.Part {
		found, is := parts[each.PartNumber]
		if !is || each.ETag != tag(found) || (len(found) < partBytesMin && at < len(told.Part)-1) {
			refuse(w, http.StatusBadRequest)
			return
		}
		content.Write(found)
	}
	if etag := s.put(w, r.Header, bucket, name, &content); etag != "" {
		answer(w, struct {
			XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
			ETag    string
		}{ETag: quoted(etag)})
	}
}

// end forgets an upload and returns its parts.
func (s *server) end(upload string) map[int][]byte {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	parts := s.uploads[upload]
	delete(s.uploads, upload)
	return parts
}

func quoted(etag string) string { return `"` + strings.Trim(etag, `"`) + `"` }

func tag(content []byte) string { return fmt.Sprintf(`"%x"`, sha256.Sum256(content)) }

func publicKey(file string) (*rsa.PublicKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("`%s` holds no PEM", file)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	account, is := key.(*rsa.PublicKey)
	if !is {
		return nil, fmt.Errorf("`%s` holds no key of RSA", file)
	}
	return account, nil
}

// logged writes a line for each request: what was asked, the condition, and what was answered; never who asked.
func logged(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &statusSeen{ResponseWriter: w, status: http.StatusOK}
		handler.ServeHTTP(seen, r)
		log.Print(r.Method, " ", r.URL, " ", r.Header.Get("x-goog-if-generation-match"), " -> ", seen.status)
	})
}

type statusSeen struct {
	http.ResponseWriter
	status int
}

func (s *statusSeen) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

func main() {
	address := flag.String("address", "", "where to listen, HOST:PORT")
	bucket := flag.String("bucket", "", "the bucket that there is")
	key := flag.String("key", "", "the file with the account's public key")
	flag.Parse()
	account, err := publicKey(*key)
	if err != nil {
		log.Fatal(err)
	}
	store, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, PublicHost: *address})
	if err != nil {
		log.Fatal(err)
	}
	store.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: *bucket})
	front := &server{store: store, account: account, uploads: map[string]map[int][]byte{}}
	listening := http.Server{Addr: *address, Handler: logged(front), ReadHeaderTimeout: time.Minute}
	log.Fatal(listening.ListenAndServe())
}
