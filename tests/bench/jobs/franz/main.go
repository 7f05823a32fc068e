// The job with franz-go's GroupTransactSession: exactly once. JSON_LIB=goccy: a faster JSON library than encoding/json.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	goccy "github.com/goccy/go-json"
	"github.com/twmb/franz-go/pkg/kgo"
)

type in struct {
	ID     int64   `json:"id"`
	User   string  `json:"user"`
	Amount float64 `json:"amount"`
	Status string  `json:"status"`
	Pad    string  `json:"pad"`
}
type out struct {
	ID          int64   `json:"id"`
	Customer    string  `json:"customer"`
	Amount      float64 `json:"amount"`
	Status      string  `json:"status"`
	Pad         string  `json:"pad"`
	AmountCents int64   `json:"amount_cents"`
}

var (
	unmarshal = json.Unmarshal
	marshal   = json.Marshal
)

func transform(v []byte) ([]byte, bool, error) {
	var r in
	if err := unmarshal(v, &r); err != nil {
		return nil, false, err
	}
	if r.Status == "bad" {
		return nil, false, nil
	}
	b, err := marshal(out{r.ID, r.User, r.Amount, r.Status, r.Pad, int64(r.Amount * 100)})
	return b, true, err
}

func main() {
	group, src, dst := os.Getenv("GROUP"), os.Getenv("SRC_TOPIC"), os.Getenv("DST_TOPIC")
	ms, err := strconv.Atoi(os.Getenv("COMMIT_MS"))
	if err != nil {
		log.Fatal(err)
	}
	interval := time.Duration(ms) * time.Millisecond
	if os.Getenv("JSON_LIB") == "goccy" {
		unmarshal, marshal = goccy.Unmarshal, goccy.Marshal
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	sess, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(os.Getenv("BOOTSTRAP")),
		kgo.TransactionalID(group+"-tx"),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(src),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.DefaultProduceTopic(dst),
		kgo.ProducerBatchCompression(kgo.Lz4Compression()),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer sess.Close()

	for ctx.Err() == nil {
		fetches := sess.PollRecords(ctx, 10000)
		if ctx.Err() != nil {
			return
		}
		if err := sess.Begin(); err != nil {
			log.Fatal(err)
		}
		deadline := time.Now().Add(interval)
		e := kgo.AbortingFirstErrPromise(sess.Client())
		for {
			for _, fe := range fetches.Errors() {
				if !errors.Is(fe.Err, context.DeadlineExceeded) {
					log.Fatal(fe.Err)
				}
			}
			fetches.EachRecord(func(r *kgo.Record) {
				v, keep, err := transform(r.Value)
				if err != nil {
					log.Fatal(err)
				}
				if keep {
					sess.Produce(ctx, &kgo.Record{Key: r.Key, Value: v}, e.Promise())
				}
			})
			left := time.Until(deadline)
			if left <= 0 {
				break
			}
			pctx, cancel := context.WithTimeout(ctx, left)
			fetches = sess.PollRecords(pctx, 10000)
			cancel()
		}
		if _, err := sess.End(ctx, e.Err() == nil); err != nil && ctx.Err() == nil {
			log.Fatal(err)
		}
	}
}
