// kafkajs as a client of kustos: plays each scene of its orders and prints what came of them, as JSON. Orders are JSON in
// the environment, so that no secret stands on a command line.
import kafkajs from 'kafkajs';

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ConfigResourceTypes, Kafka, ResourcePatternTypes } = kafkajs;
const given = JSON.parse(process.env.KUSTOS_TEST_CLIENT);
const PATIENCE_MS = 60_000; // a scene that takes longer hangs
const QUIET = () => () => {};

// in the place of a partitioner that warns of its own change
const toTheFirst = () => () => 0;

function kafka(user) {
  return new Kafka({
    brokers: [given.bootstrap],
    clientId: user,
    sasl: { mechanism: 'scram-sha-512', username: user, password: given.users[user] },
    logCreator: QUIET,
    retry: { retries: 8 },
  });
}

// what the client itself calls an error that a broker answered
const nameOf = (error) => error.type ?? error.cause?.type ?? error.errors?.[0]?.type ?? String(error);

async function refusal(promise) {
  try {
    await promise;
    return 'NONE';
  } catch (error) {
    return nameOf(error);
  }
}

const messages = (values) => values.map((value) => ({ value }));

async function connected(client, work) {
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.disconnect();
  }
}

function produce() {
  const producer = kafka(given.writer).producer({ idempotent: true, createPartitioner: toTheFirst });
  return connected(producer, async () => {
    const [told] = await producer.send({ topic: given.topic, acks: -1, messages: messages(given.values) });
    const first = Number(told.baseOffset);
    const denied = producer.send({ topic: given.denied_topic, acks: -1, messages: messages(given.values) });
    return { offsets: given.values.map((_, at) => first + at), denied: await refusal(denied) };
  });
}

async function read(group, count) {
  const consumer = kafka(given.writer).consumer({ groupId: group, retry: { retries: 0 } });
  return connected(consumer, async () => {
    await consumer.subscribe({ topics: [given.topic], fromBeginning: true });
    const values = [];
    const whole = new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
      consumer.run({
        autoCommit: false,
        eachMessage: async ({ topic, partition, message }) => {
          values.push(message.value.toString());
          const offset = String(Number(message.offset) + 1);
          await consumer.commitOffsets([{ topic, partition, offset }]);
          if (values.length === count) resolve(values);
        },
      }).catch(reject);
    });
    return whole;
  });
}

async function group() {
  const values = await read(given.group, given.values.length);
  return { values, denied: await refusal(read(given.denied_group, 1)) };
}

async function transaction() {
  const settings = { idempotent: true, maxInFlightRequests: 1, createPartitioner: toTheFirst };
  const named = (transactionalId) => kafka(given.writer).producer({ ...settings, transactionalId });
  await connected(named(given.transaction), async (producer) => {
    for (const [values, end] of [[given.aborted, 'abort'], [given.committed, 'commit']]) {
      const begun = await producer.transaction();
      await begun.send({ topic: given.topic, acks: -1, messages: messages(values) });
      await begun[end]();
    }
  });
  return { denied: await refusal(connected(named(`not-${given.transaction}`), (producer) => producer.transaction())) };
}

async function described(admin) {
  for (;;) {
    // the controller has made it, and the broker may yet have to read of it
    const { topics } = await admin.fetchTopicMetadata({ topics: [given.made_topic] });
    if (topics[0].partitions.length === 2) return topics[0].partitions.length;
  }
}

function admin() {
  return connected(kafka(given.admin).admin(), async (admin) => {
    const topic = (name) => ({ topics: [{ topic: name, numPartitions: 2, replicationFactor: 1 }] });
    await admin.createTopics(topic(given.made_topic));
    const denied = await refusal(admin.createTopics(topic(`${given.denied_topic}-made`)));
    const partitions = await described(admin);
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: given.made_topic }];
    const configs = await admin.describeConfigs({ resources, includeSynonyms: false });
    const acls = await admin.describeAcls({
      resourceType: AclResourceTypes.ANY,
      resourcePatternType: ResourcePatternTypes.ANY,
      operation: AclOperationTypes.ANY,
      permissionType: AclPermissionTypes.ANY,
    });
    return {
      partitions,
      configs: configs.resources[0].configEntries.length > 0,
      acls: acls.resources.reduce((sum, each) => sum + each.acls.length, 0),
      deleted: await refusal(admin.deleteTopics({ topics: [given.made_topic] })),
      denied,
      not_deleted: await refusal(admin.deleteTopics({ topics: [given.topic] })),
    };
  });
}

const said = {};
for (const [name, scene] of Object.entries({ produce, group, transaction, admin })) {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`takes longer than ${PATIENCE_MS} ms`)), PATIENCE_MS).unref();
  });
  said[name] = await Promise.race([scene(), late]).catch((error) => ({ failed: String(error) }));
}
process.stdout.write(`${JSON.stringify(said)}\n`, () => process.exit(0));
