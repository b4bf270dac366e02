import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;

import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporter;
import org.apache.kafka.server.telemetry.ClientTelemetryExporterProvider;

/** A broker's plug-in that writes a line for each push of a client's metrics: instance, size, whether the last. */
public final class TelemetryWriter implements MetricsReporter, ClientTelemetryExporterProvider {
    private Path file;

    @Override
    public void configure(Map<String, ?> configs) {
        file = Path.of((String) configs.get("telemetry.writer.file"));
    }

    @Override
    public void init(List<KafkaMetric> metrics) {
        // only clients' metrics are written
    }

    @Override
    public void metricChange(KafkaMetric metric) {
        // as above
    }

    @Override
    public void metricRemoval(KafkaMetric metric) {
        // as above
    }

    @Override
    public void close() {
        // each line is written when it comes
    }

    @Override
    public ClientTelemetryExporter clientTelemetryExporter() {
        return (context, payload) -> {
            String line = payload.clientInstanceId() + " " + payload.data().remaining()
                + " " + payload.isTerminating() + "\n";
            try {
                Files.writeString(file, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
        };
    }
}
