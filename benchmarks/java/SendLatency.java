import java.io.FileInputStream;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends records one after the other, each when the one before is acknowledged; prints the median in microseconds. */
public final class SendLatency {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            properties.load(file);
        }
        properties.put("acks", "1");
        properties.put("linger.ms", "0");
        properties.put("enable.idempotence", "false");
        String topic = arguments[1];
        int warmUp = Integer.parseInt(arguments[2]);
        int count = Integer.parseInt(arguments[3]);
        byte[] value = new byte[1000];
        long[] nanoseconds = new long[count];
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(properties, bytes, bytes)) {
            for (int i = 0; i < warmUp + count; i++) {
                long start = System.nanoTime();
                producer.send(new ProducerRecord<>(topic, value)).get();
                if (i >= warmUp) {
                    nanoseconds[i - warmUp] = System.nanoTime() - start;
                }
            }
        }
        Arrays.sort(nanoseconds);
        System.out.println(nanoseconds[count / 2] / 1000.0);
    }
}
