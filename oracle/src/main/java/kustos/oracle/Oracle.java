package kustos.oracle;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.server.authorizer.internals.CidrUtils;

/**
 * Kafka's real StandardAuthorizer behind lines of text: fields between tabs, UTF-8, one reply per question.
 *
 * <pre>
 * start    super.users  true|false  [unready]   a new authorizer          no reply
 * add      number type name pattern principal host operation permission   no reply
 * remove   number                                                          no reply
 * fault    the fields of add or remove with their verb                     FAULT or OK
 * configure super.users true|false   other settings, the ACLs stay         no reply
 * ready                              the ACLs are all there                no reply
 * snapshot count, then so many lines: acl + the fields of add              no reply
 * ask      principal host operation type name                              result, rule
 * any      principal host operation type                                   result
 * acls     type name pattern principal host operation permission, texts
 *          as - for null or =text                                          verdict on the filter, ACLs
 * new      metadata.version level, type name pattern principal host
 *          operation permission                                            verdict on the new ACL
 * audit    principalType principalName host operation type name
 *          apiKey count logIfAllowed logIfDenied                           level, audit line
 * cidr     host pattern                                                    true|false
 * question the fields of ask or any, kept for time                         no reply
 * time     rounds warmUpMillis                                             answers, nanoseconds per round
 * keep     the fields of add: an ACL kept for load or change               no reply
 * each     number type name pattern host operation permission
 *          principal...: keep for each principal, numbers rising           no reply
 * load     rounds warmUpMillis                                             count, nanoseconds per round
 * change   rounds warmUpMillis                       count, nanoseconds to add and to remove, per round
 * singly   decisions warmUpMillis                count, nanoseconds of each addition, then of each removal
 * heap                                               bytes in use after garbage collection
 * </pre>
 *
 * A principal that asks is `type:name`, or `type|name` where the type holds a colon. A verdict is OK, the
 * exception with its text, or IMPOSSIBLE for what has no binding; ACLs are parted by U+001F.
 *
 * An exception is answered ERROR with its class. A question that takes STUCK_MILLIS of processor time
 * (Kafka's scan can loop for ever) is answered STUCK, and the process ends: nothing can stop that thread
 * otherwise.
 */
public final class Oracle {
    private static final long STUCK_MILLIS = Long.getLong("stuck.millis", 3_000);
    private static final int STUCK_EXIT_CODE = 3;

    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private final BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
    private Subject subject = new Subject("", false, true);
    private final Timing timing = new Timing();
    private long asked;
    /** The number of the question under way, 0 if there is none. */
    private volatile long underWay;

    public static void main(String[] arguments) throws IOException {
        new Oracle().run();
    }

    private void run() throws IOException {
        long asking = Thread.currentThread().getId();
        Thread watchdog = new Thread(() -> watch(asking), "watchdog");
        watchdog.setDaemon(true);
        watchdog.start();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String reply = handle(line.split("\t", -1));
            if (reply != null) {
                out.print(reply);
                out.print('\n');
                if (!in.ready()) out.flush();
            }
        }
        out.flush();
    }

    /** Processor time is watched, not the clock: on a busy machine whatever is asked takes long. */
    private void watch(long asking) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long allowedNanos = TimeUnit.MILLISECONDS.toNanos(STUCK_MILLIS);
        long seen = 0;
        long spentNanos = 0;
        while (true) {
            try {
                TimeUnit.MILLISECONDS.sleep(STUCK_MILLIS / 10);
            } catch (InterruptedException e) {
                return;
            }
            long question = underWay;
            if (question == 0 || question != seen) {
                seen = question;
                spentNanos = threads.getThreadCpuTime(asking);
            } else if (threads.getThreadCpuTime(asking) - spentNanos > allowedNanos) {
                out.print("STUCK\n");
                out.flush();
                Runtime.getRuntime().halt(STUCK_EXIT_CODE);
            }
        }
    }

    private String handle(String[] fields) throws IOException {
        switch (fields[0]) {
            case "start":
                subject = new Subject(fields[1], Boolean.parseBoolean(fields[2]), fields.length == 3);
                return null;
            case "add":
                subject.authorizer.addAcl(id(fields[1]), acl(fields));
                return null;
            case "remove":
                subject.authorizer.removeAcl(id(fields[1]));
                return null;
            case "configure":
                subject.configure(fields[1], Boolean.parseBoolean(fields[2]));
                return null;
            case "ready":
                subject.authorizer.completeInitialLoad();
                return null;
            case "snapshot":
                Map<Uuid, StandardAcl> acls = new HashMap<>();
                for (int left = Integer.parseInt(fields[1]); left > 0; left--) {
                    String[] acl = in.readLine().split("\t", -1);
                    acls.put(id(acl[1]), acl(acl));
                }
                subject.authorizer.loadSnapshot(acls);
                return null;
            case "question":
                timing.keep(fields);
                return null;
            case "keep":
                timing.keep(id(fields[1]), acl(fields));
                return null;
            case "each":
                keepEach(fields);
                return null;
            case "load":
                return timing.load(subject, Integer.parseInt(fields[1]), Long.parseLong(fields[2]));
            case "change":
                return timing.change(subject, Integer.parseInt(fields[1]), Long.parseLong(fields[2]));
            case "singly":
                return timing.changeSingly(subject, Integer.parseInt(fields[1]), Long.parseLong(fields[2]));
            case "heap":
                return Timing.heap();
            case "time":
                return timing.time(subject, Integer.parseInt(fields[1]), Long.parseLong(fields[2]));
            default:
                return answer(fields);
        }
    }

    private String answer(String[] fields) {
        underWay = ++asked;
        try {
            switch (fields[0]) {
                case "ask":
                    return subject.ask(fields[1], fields[2], fields[3], fields[4], fields[5]);
                case "any":
                    return subject.any(fields[1], fields[2], fields[3], fields[4]);
                case "fault":
                    return fault(Arrays.copyOfRange(fields, 1, fields.length));
                case "acls":
                    return Control.acls(subject, fields);
                case "new":
                    return Control.newAcl(fields);
                case "audit":
                    return subject.audit(fields);
                case "cidr":
                    return Boolean.toString(CidrUtils.isInRange(fields[1], fields[2]));
                default:
                    return "ERROR\tunknown verb " + fields[0];
            }
        } catch (Exception e) {
            return "ERROR\t" + e.getClass().getSimpleName();
        } finally {
            underWay = 0;
        }
    }

    private String fault(String[] change) throws IOException {
        try {
            handle(change);
            return "OK";
        } catch (RuntimeException e) {
            return "FAULT";
        }
    }

    private void keepEach(String[] fields) {
        long number = Long.parseLong(fields[1]);
        for (int index = 8; index < fields.length; index++) {
            StandardAcl acl = new StandardAcl(
                ResourceType.valueOf(fields[2]), fields[3], PatternType.valueOf(fields[4]), fields[index],
                fields[5], AclOperation.valueOf(fields[6]), AclPermissionType.valueOf(fields[7]));
            timing.keep(new Uuid(1L, number++), acl);
        }
    }

    private static Uuid id(String number) {
        return new Uuid(1L, Long.parseLong(number));
    }

    private static StandardAcl acl(String[] fields) {
        return new StandardAcl(
            ResourceType.valueOf(fields[2]), fields[3], PatternType.valueOf(fields[4]), fields[5], fields[6],
            AclOperation.valueOf(fields[7]), AclPermissionType.valueOf(fields[8]));
    }
}
