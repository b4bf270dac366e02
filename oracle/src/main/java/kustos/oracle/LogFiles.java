package kustos.oracle;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.metadata.ScramCredentialData;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.util.BatchFileReader;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Metadata log files through Kafka's own reader and images.
 *
 * <pre>
 * image SNAPSHOT SEGMENT...   what they add up to, a sorted line each; "-" for no snapshot
 * recover SNAPSHOT            ACLs; nanoseconds of decoding, of loading, of the first decision; resident kB at
 *                             most; nanoseconds of processor time of all threads
 * </pre>
 */
public final class LogFiles {
    private static final LeaderAndEpoch LEADER = new LeaderAndEpoch(OptionalInt.of(1), 1);
    private static final String NONE = "-";

    private LogFiles() { }

    public static void main(String[] arguments) throws IOException {
        switch (arguments[0]) {
            case "image" -> image(List.of(arguments).subList(1, arguments.length));
            case "recover" -> recover(arguments[1]);
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    private static MetadataImage snapshot(String file) throws IOException {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        try (BatchFileReader reader = new BatchFileReader.Builder().setPath(file).build()) {
            while (reader.hasNext()) {
                BatchFileReader.BatchAndType next = reader.next();
                if (next.isControl()) continue;
                for (ApiMessageAndVersion record : next.batch().records()) delta.replay(record.message());
            }
        }
        delta.finishSnapshot();
        return delta.apply(MetadataProvenance.EMPTY);
    }

    private static void image(List<String> files) throws IOException {
        AtomicReference<MetadataImage> last = new AtomicReference<>(MetadataImage.EMPTY);
        if (!files.get(0).equals(NONE)) last.set(snapshot(files.get(0)));
        List<Throwable> faults = new ArrayList<>();
        MetadataBatchLoader loader = new MetadataBatchLoader(new LogContext(), Time.SYSTEM, (text, cause) -> {
            faults.add(cause);
            return new IllegalStateException(text, cause);
        }, (delta, image, manifest) -> last.set(image), (type, name) -> true);
        loader.resetToImage(last.get());
        for (String file : files.subList(1, files.size())) {
            try (BatchFileReader reader = new BatchFileReader.Builder().setPath(file).build()) {
                while (reader.hasNext()) {
                    BatchFileReader.BatchAndType next = reader.next();
                    if (next.isControl()) continue;
                    loader.loadBatch(next.batch(), LEADER);
                    // what is aborted is dropped only here: a node does it at the end of each commit
                    loader.maybeFlushBatches(LEADER, true);
                }
            }
        }
        TreeSet<String> lines = new TreeSet<>();
        if (!faults.isEmpty()) lines.add("fault " + faults);
        MetadataImage image = last.get();
        image.features().finalizedVersions().forEach((name, level) -> lines.add("feature " + name + " " + level));
        image.features().metadataVersion().ifPresent(it -> lines.add("metadata.version " + it.featureLevel()));
        image.acls().acls().forEach((id, acl) -> lines.add("acl " + id + " " + acl.toBinding()));
        for (Map.Entry<ScramMechanism, Map<String, ScramCredentialData>> each : image.scram().mechanisms().entrySet()) {
            each.getValue().forEach((user, credential) ->
                lines.add("scram " + each.getKey().mechanismName() + " " + user + " " + credential.iterations()));
        }
        image.delegationTokens().tokens().keySet().forEach(id -> lines.add("token " + id));
        lines.forEach(System.out::println);
    }

    private static void recover(String file) throws IOException {
        long before = processorNanos();
        long begun = System.nanoTime();
        Map<Uuid, StandardAcl> acls = snapshot(file).acls().acls();
        long decoded = System.nanoTime();
        Subject subject = new Subject("", false, false);
        Subject.listen(false);
        subject.authorizer.loadSnapshot(acls);
        subject.authorizer.completeInitialLoad();
        long loaded = System.nanoTime();
        Subject.Context context = new Subject.Context(
            Subject.principal("User:nobody"), InetAddress.getByName("10.0.0.1"), 3);
        ResourcePattern topic = new ResourcePattern(ResourceType.TOPIC, "first", PatternType.LITERAL);
        subject.authorizer.authorize(context, List.of(new Action(AclOperation.READ, topic, 1, true, true)));
        long decided = System.nanoTime();
        System.out.printf("%d\t%d\t%d\t%d\t%d\t%d%n", acls.size(), decoded - begun, loaded - decoded,
            decided - loaded, peakKilobytes(), processorNanos() - before);
    }

    /** Of all threads: the collector and the compiler work for the load, too. */
    private static long processorNanos() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
    }

    private static long peakKilobytes() throws IOException {
        Optional<String> line = Files.readAllLines(Path.of("/proc/self/status")).stream()
            .filter(each -> each.startsWith("VmHWM")).findFirst();
        return Long.parseLong(line.orElseThrow().replaceAll("[^0-9]", ""));
    }
}
