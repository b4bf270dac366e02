// franz-go as a client of kustos. `franz scenes` plays each scene of its orders and prints what came of them, as JSON;
// `franz member` reads in a group until it is killed, and prints a line for each record: topic, partition, offset,
// value. Orders are JSON in the environment, so that no secret stands on a command line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// A scene that takes longer hangs.
const patience = 60 * time.Second

type orders struct {
	Bootstrap   string            `json:"bootstrap"`
	Users       map[string]string `json:"users"`
	Writer      string            `json:"writer"`
	Admin       string            `json:"admin"`
	Topic       string            `json:"topic"`
	DeniedTopic string            `json:"denied_topic"`
	Group       string            `json:"group"`
	DeniedGroup string            `json:"denied_group"`
	Transaction string            `json:"transaction"`
	MadeTopic   string            `json:"made_topic"`
	Values      []string          `json:"values"`
	Committed   []string          `json:"committed"`
	Aborted     []string          `json:"aborted"`
}

// What a scene says, by name of what it says.
type said map[string]any

func (given orders) client(user string, more ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(given.Bootstrap),
		kgo.ClientID(user),
		kgo.SASL(scram.Auth{User: user, Pass: given.Users[user]}.AsSha512Mechanism()),
	}, more...)...)
}

// name returns what the client itself calls an error that a broker answered.
func name(err error) string {
	var told *kerr.Error
	switch {
	case err == nil:
		return "NONE"
	case errors.As(err, &told):
		return told.Message
	default:
		return err.Error()
	}
}

func records(topic string, values []string) []*kgo.Record {
	made := make([]*kgo.Record, len(values))
	for at, value := range values {
		made[at] = &kgo.Record{Topic: topic, Value: []byte(value)}
	}
	return made
}

func (given orders) produce(ctx context.Context) (said, error) {
	// idempotent by default
	client, err := given.client(given.Writer, kgo.RequiredAcks(kgo.AllISRAcks()))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	offsets := []int64{}
	for _, each := range client.ProduceSync(ctx, records(given.Topic, given.Values)...) {
		if each.Err != nil {
			return nil, each.Err
		}
		offsets = append(offsets, each.Record.Offset)
	}
	denied := client.ProduceSync(ctx, records(given.DeniedTopic, given.Values[:1])...).FirstErr()
	return said{"offsets": offsets, "denied": name(denied)}, nil
}

func (given orders) group(ctx context.Context) (said, error) {
	client, err := given.client(given.Writer, kgo.ConsumerGroup(given.Group), kgo.ConsumeTopics(given.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	values := []string{}
	for len(values) < len(given.Values) {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return nil, err
		}
		fetched.EachRecord(func(each *kgo.Record) { values = append(values, string(each.Value)) })
		if err := client.CommitUncommittedOffsets(ctx); err != nil {
			return nil, err
		}
	}
	denied, err := given.deniedGroup(ctx)
	return said{"values": values, "denied": name(denied)}, err
}

// deniedGroup returns with what error a group ends that may not be read.
func (given orders) deniedGroup(ctx context.Context) (told, err error) {
	client, err := given.client(given.Writer, kgo.ConsumerGroup(given.DeniedGroup), kgo.ConsumeTopics(given.Topic))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for ctx.Err() == nil {
		if told = client.PollFetches(ctx).Err(); told != nil {
			return told, nil
		}
	}
	return nil, ctx.Err()
}

func (given orders) transaction(ctx context.Context) (said, error) {
	client, err := given.client(given.Writer, kgo.TransactionalID(given.Transaction))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for _, each := range []struct {
		values []string
		end    kgo.TransactionEndTry
	}{{given.Aborted, kgo.TryAbort}, {given.Committed, kgo.TryCommit}} {
		if err := client.BeginTransaction(); err != nil {
			return nil, err
		}
		if err := client.ProduceSync(ctx, records(given.Topic, each.values)...).FirstErr(); err != nil {
			return nil, err
		}
		if err := client.EndTransaction(ctx, each.end); err != nil {
			return nil, err
		}
	}
	stranger, err := given.client(given.Writer, kgo.TransactionalID("not-"+given.Transaction))
	if err != nil {
		return nil, err
	}
	defer stranger.Close()
	// a producer without an id cannot even begin
	denied := stranger.BeginTransaction()
	return said{"denied": name(denied)}, nil
}

func (given orders) admin(ctx context.Context) (said, error) {
	client, err := given.client(given.Admin)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	made, err := admin.CreateTopics(ctx, 2, 1, nil, given.MadeTopic, given.DeniedTopic+"-made")
	if err != nil {
		return nil, err
	}
	if err := made[given.MadeTopic].Err; err != nil {
		return nil, err
	}
	var partitions int
	for partitions != 2 {
		// the controller has made it, and the broker may yet have to read of it
		topics, err := admin.ListTopics(ctx, given.MadeTopic)
		if err != nil {
			return nil, err
		}
		partitions = len(topics[given.MadeTopic].Partitions)
	}
	configs, err := admin.DescribeTopicConfigs(ctx, given.MadeTopic)
	if err != nil {
		return nil, err
	}
	acls, err := admin.DescribeACLs(ctx, kadm.NewACLs().AnyResource().Allow().AllowHosts().Deny().DenyHosts().
		Operations(kadm.OpAny).ResourcePatternType(kadm.ACLPatternAny))
	if err != nil {
		return nil, err
	}
	described := 0
	for _, each := range acls {
		if each.Err != nil {
			return nil, each.Err
		}
		described += len(each.Described)
	}
	gone, err := admin.DeleteTopics(ctx, given.MadeTopic, given.Topic)
	if err != nil {
		return nil, err
	}
	return said{
		"partitions": partitions, "configs": len(configs) == 1 && len(configs[0].Configs) > 0, "acls": described,
		"deleted": name(gone[given.MadeTopic].Err), "denied": name(made[given.DeniedTopic+"-made"].Err),
		"not_deleted": name(gone[given.Topic].Err),
	}, nil
}

func (given orders) member(ctx context.Context) error {
	client, err := given.client(given.Writer, kgo.ConsumerGroup(given.Group), kgo.ConsumeTopics(given.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.Balancers(kgo.RoundRobinBalancer()),
		kgo.SessionTimeout(6*time.Second), kgo.AutoCommitMarks(), kgo.AutoCommitInterval(200*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		// a few at a time, so that it can be killed amid them
		fetched := client.PollRecords(ctx, 20)
		fetched.EachRecord(func(each *kgo.Record) {
			fmt.Printf("%s\t%d\t%d\t%s\n", each.Topic, each.Partition, each.Offset, each.Value)
		})
		client.MarkCommitRecords(fetched.Records()...)
	}
}

func run() error {
	var given orders
	if err := json.Unmarshal([]byte(os.Getenv("KUSTOS_TEST_CLIENT")), &given); err != nil {
		return err
	}
	if os.Args[1] == "member" {
		return given.member(context.Background())
	}
	outcome := said{}
	for _, scene := range []struct {
		name string
		play func(context.Context) (said, error)
	}{{"produce", given.produce}, {"group", given.group}, {"transaction", given.transaction}, {"admin", given.admin}} {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		result, err := scene.play(ctx)
		cancel()
		if err != nil {
			result = said{"failed": err.Error()}
		}
		outcome[scene.name] = result
	}
	return json.NewEncoder(os.Stdout).Encode(outcome)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
