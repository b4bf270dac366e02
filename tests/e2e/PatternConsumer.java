import java.io.FileInputStream;
import java.io.InputStream;
import java.time.Duration;
import java.util.Collection;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Reads the topics that match an expression, and says what it is assigned and reads, until it is terminated. */
public class PatternConsumer {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (InputStream file = new FileInputStream(arguments[0])) {
            settings.load(file);
        }
        KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        Thread reader = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                reader.join();
            } catch (InterruptedException e) {
                return;
            }
        }));
        ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                TreeSet<String> topics = new TreeSet<>();
                consumer.assignment().forEach(partition -> topics.add(partition.topic()));
                System.out.println("assigned " + topics);
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                partitions.forEach(partition -> System.out.println("revoked " + partition.topic()));
            }
        };
        try {
            consumer.subscribe(new SubscriptionPattern(arguments[1]), listener);
            while (true)
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1)))
                    System.out.println("read " + record.topic() + " " + record.value());
        } catch (WakeupException e) {
            System.out.println("ended");
        } catch (RuntimeException e) {
            System.out.println("failed " + e);
        } finally {
            consumer.close();
        }
    }
}
