import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.CRC32;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own client as `jane`: an idempotent and a transactional producer, a consumer group and a share group.
 *
 * Arguments: bootstrap servers, password, prefix of ids, seed, file of notes, stop file.
 */
public final class FaultClient {
    private static final int BURST = 5;
    private static final int TRANSACTION_RECORDS = 8;
    private static final long PAUSE_MS = 200;
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private final String bootstrap;
    private final String password;
    private final String prefix;
    private final long seed;
    private final BufferedWriter notes;
    private final Path stop;
    private final AtomicLong number = new AtomicLong();

    private FaultClient(String[] arguments) throws IOException {
        bootstrap = arguments[0];
        password = arguments[1];
        prefix = arguments[2];
        seed = Long.parseLong(arguments[3]);
        notes = Files.newBufferedWriter(Path.of(arguments[4]));
        stop = Path.of(arguments[5]);
    }

    private interface Job {
        void run() throws Exception;
    }

    private boolean goesOn() {
        return !Files.exists(stop);
    }

    private synchronized void note(Object... fields) {
        StringBuilder line = new StringBuilder();
        for (Object field : fields) {
            line.append(line.length() == 0 ? "" : "\t").append(field);
        }
        try {
            notes.write(line.append('\n').toString());
            notes.flush();
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private Properties settings(String purpose) {
        Properties made = new Properties();
        made.put("bootstrap.servers", bootstrap);
        made.put("client.id", "jane:" + purpose);
        made.put("security.protocol", "SASL_PLAINTEXT");
        made.put("sasl.mechanism", "SCRAM-SHA-256");
        made.put("sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required "
            + "username=\"jane\" password=\"" + password + "\";");
        made.put("request.timeout.ms", "10000");
        made.put("reconnect.backoff.max.ms", "1000");
        return made;
    }

    private KafkaProducer<byte[], byte[]> producer(String purpose, String transactionalId) {
        Properties made = settings(purpose);
        made.put("delivery.timeout.ms", "120000");
        made.put("linger.ms", "5");
        if (transactionalId != null) {
            made.put("transactional.id", transactionalId);
        }
        return new KafkaProducer<>(made, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static long checksum(byte[] value) {
        CRC32 sum = new CRC32();
        sum.update(value);
        return sum.getValue();
    }

    private void send(KafkaProducer<byte[], byte[]> producer, String topic, String transaction, Random chance) {
        String id = prefix + "-" + number.incrementAndGet();
        String body = id + "|" + topic + "|" + "x".repeat(50 + chance.nextInt(1950)) + "|";
        String value = body + String.format("%08x", checksum(body.getBytes(StandardCharsets.UTF_8)));
        note("S", id, topic, transaction);
        producer.send(new ProducerRecord<>(topic, value.getBytes(StandardCharsets.UTF_8)), (told, error) -> {
            if (error == null) {
                note("A", id, told.topic(), told.partition(), told.offset());
            } else {
                note("F", id, error.getClass().getSimpleName());
            }
        });
    }

    private void produce() throws Exception {
        Random chance = new Random(seed);
        KafkaProducer<byte[], byte[]> producer = producer("records", null);
        while (goesOn()) {
            try {
                for (int i = 0; i < BURST; i++) {
                    send(producer, "jane-records", "-", chance);
                }
            } catch (KafkaException error) {
                note("N", "producers replaced (" + error.getClass().getSimpleName() + ")", 1);
                producer.close(PATIENCE);
                producer = producer("records", null);
            }
            Thread.sleep(PAUSE_MS);
        }
        producer.close(PATIENCE);
    }

    private void transact() throws Exception {
        Random chance = new Random(seed + 1);
        KafkaProducer<byte[], byte[]> producer = null;
        for (int t = 1; goesOn(); t++) {
            try {
                if (producer == null) {
                    producer = producer("payments", "jane-transactions");
                    producer.initTransactions();
                }
                transaction(producer, prefix + "-t" + t, chance);
            } catch (KafkaException error) {
                // fatal, or without an end: the next producer of this name settles it
                note("N", "transactions given up (" + error.getClass().getSimpleName() + ")", 1);
                if (producer != null) {
                    producer.close(Duration.ZERO);
                }
                producer = null;
            }
        }
        if (producer != null) {
            producer.close(PATIENCE);
        }
    }

    private void transaction(KafkaProducer<byte[], byte[]> producer, String name, Random chance) throws Exception {
        boolean aborts = chance.nextInt(5) == 0;
        producer.beginTransaction();
        for (int i = 0; i < TRANSACTION_RECORDS; i++) {
            send(producer, "jane-payments", name, chance);
        }
        Thread.sleep(PAUSE_MS);
        if (aborts) {
            producer.abortTransaction();
            note("X", name);
            return;
        }
        try {
            producer.commitTransaction();
        } catch (TimeoutException error) {
            // it may still be done, and must be asked for again
            producer.commitTransaction();
        }
        note("C", name);
    }

    private void read(ConsumerRecord<byte[], byte[]> each) {
        note("R", each.topic(), each.partition(), each.offset(), checksum(each.value()));
    }

    private void consume() {
        Properties made = settings("reading");
        made.put("group.id", "jane-group");
        made.put("auto.offset.reset", "earliest");
        made.put("isolation.level", "read_committed");
        made.put("session.timeout.ms", "10000");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(made, bytes, bytes)) {
            consumer.subscribe(List.of("jane-records", "jane-payments", "changing"));
            while (goesOn()) {
                try {
                    consumer.poll(Duration.ofMillis(PAUSE_MS)).forEach(this::read);
                } catch (TopicAuthorizationException error) {
                    note("N", "polls of the consumer that were denied", 1);
                } catch (KafkaException error) {
                    note("N", "errors of the consumer (" + error.getClass().getSimpleName() + ")", 1);
                }
            }
        } catch (KafkaException error) {
            note("N", "consumers that did not end in good order", 1);
        }
    }

    private void share() {
        Properties made = settings("sharing");
        made.put("group.id", "jane-share");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(made, bytes, bytes)) {
            consumer.subscribe(List.of("jane-records"));
            while (goesOn()) {
                try {
                    for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(PAUSE_MS))) {
                        read(each);
                        note("N", "records shared", 1);
                    }
                } catch (KafkaException | IllegalStateException error) {
                    note("N", "errors of the share consumer (" + error.getClass().getSimpleName() + ")", 1);
                }
            }
        } catch (KafkaException error) {
            note("N", "share consumers that did not end in good order", 1);
        }
    }

    private Thread started(String name, Job job) {
        Thread thread = new Thread(() -> {
            try {
                job.run();
            } catch (Exception error) {
                note("P", name + " ended by " + error);
            }
        }, name);
        thread.start();
        return thread;
    }

    public static void main(String[] arguments) throws Exception {
        FaultClient client = new FaultClient(arguments);
        List<Thread> threads = List.of(
            client.started("producer", client::produce),
            client.started("transactions", client::transact),
            client.started("consumer", client::consume),
            client.started("share consumer", client::share));
        for (Thread thread : threads) {
            thread.join();
        }
        client.notes.close();
    }
}
