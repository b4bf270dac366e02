import java.util.concurrent.TimeUnit;
import java.util.Scanner;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.WindowedCount;

/** Kafka's own rate per minute: reads `now count` to record and `now -1` to measure. */
public final class RateProbe {
    public static void main(String[] arguments) {
        MetricConfig config = new MetricConfig();
        Rate rate = new Rate(TimeUnit.MINUTES, new WindowedCount());
        try (Scanner input = new Scanner(System.in)) {
            while (input.hasNextLong()) {
                long now = input.nextLong();
                long count = input.nextLong();
                if (count < 0) {
                    System.out.println(rate.measure(config, now));
                }
                for (long done = 0; done < count; done++) {
                    rate.record(config, 1.0, now);
                }
            }
        }
    }
}
