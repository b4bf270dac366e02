package kustos.oracle;

import java.lang.management.ManagementFactory;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.utils.internals.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Times kept questions and kept ACLs on one thread. Contexts, actions and ACLs are built before the clock
 * starts and no audit line is built, so that what is measured is the work and nothing that a caller could
 * save. Questions are kept until others come, so that rounds can alternate with somebody else's.
 */
final class Timing {
    private static final int COLLECTIONS = 3;
    /** Whoever shares the machine counts only by what they do to its caches. A load is timed by the wall. */
    private static final LongSupplier PROCESSOR = ManagementFactory.getThreadMXBean()::getCurrentThreadCpuTime;

    private final List<String[]> fresh = new ArrayList<>();
    private Map<Uuid, StandardAcl> acls = new HashMap<>();
    private Question[] questions = new Question[0];

    private record Question(
        Subject.Context context, List<Action> actions, AclOperation operation, ResourceType type) { }

    void keep(String[] fields) {
        fresh.add(fields);
    }

    void keep(Uuid id, StandardAcl acl) {
        acls.put(id, acl);
    }

    /** Asks every question once a round; returns the answers and nanoseconds of processor time. */
    String time(Subject subject, int rounds, long warmUpMillis) {
        if (!fresh.isEmpty()) questions = build();
        Subject.listen(false);
        boolean[] answers = new boolean[questions.length];
        StringBuilder nanos = timed(PROCESSOR, rounds, warmUpMillis, () -> round(subject, questions, answers));
        Subject.listen(true);
        StringBuilder reply = new StringBuilder();
        for (boolean answer : answers) reply.append(answer ? 'A' : 'D');
        return reply.append(nanos).toString();
    }

    /** Loads the kept ACLs as a snapshot, each round anew; returns their number and nanoseconds. */
    String load(Subject subject, int rounds, long warmUpMillis) {
        Map<Uuid, StandardAcl> snapshot = acls;
        acls = new HashMap<>();
        Runnable load = () -> subject.authorizer.loadSnapshot(snapshot);
        return snapshot.size() + timed(System::nanoTime, rounds, warmUpMillis, load).toString();
    }

    /** Adds the kept ACLs one by one and removes them again; returns nanoseconds of both, in turn. */
    String change(Subject subject, int rounds, long warmUpMillis) {
        Map<Uuid, StandardAcl> changes = acls;
        acls = new HashMap<>();
        Runnable add = () -> changes.forEach(subject.authorizer::addAcl);
        Runnable remove = () -> changes.keySet().forEach(subject.authorizer::removeAcl);
        timed(PROCESSOR, 0, warmUpMillis, () -> {
            add.run();
            remove.run();
        });
        StringBuilder nanos = new StringBuilder(Integer.toString(changes.size()));
        for (int left = rounds; left > 0; left--) {
            nanos.append(timed(PROCESSOR, 1, -1, add)).append(timed(PROCESSOR, 1, -1, remove));
        }
        return nanos.toString();
    }

    /**
     * Adds the kept ACLs and removes them again, each after so many decisions on the kept questions, as a
     * node does; returns nanoseconds of the wall, first of each addition and then of each removal.
     */
    String changeSingly(Subject subject, int decisions, long warmUpMillis) {
        Map<Uuid, StandardAcl> changes = acls;
        if (!fresh.isEmpty()) questions = build();
        Subject.listen(false);
        change(subject, 0, warmUpMillis);
        StringBuilder nanos = new StringBuilder(Integer.toString(changes.size()));
        int[] next = {0};
        changes.forEach((id, acl) -> {
            next[0] = decide(subject, next[0], decisions);
            nanos.append(timed(System::nanoTime, 1, -1, () -> subject.authorizer.addAcl(id, acl)));
        });
        changes.keySet().forEach(id -> {
            next[0] = decide(subject, next[0], decisions);
            nanos.append(timed(System::nanoTime, 1, -1, () -> subject.authorizer.removeAcl(id)));
        });
        Subject.listen(true);
        return nanos.toString();
    }

    private int decide(Subject subject, int first, int decisions) {
        for (int i = 0; i < decisions; i++) {
            Question question = questions[(first + i) % questions.length];
            subject.authorizer.authorize(question.context, question.actions);
        }
        return (first + decisions) % questions.length;
    }

    /** Returns the bytes of heap in use after collections. */
    static String heap() {
        for (int left = COLLECTIONS; left > 0; left--) System.gc();
        Runtime runtime = Runtime.getRuntime();
        return Long.toString(runtime.totalMemory() - runtime.freeMemory());
    }

    /** Runs warm-up (at least once, unless negative) and then so many rounds, each timed by a clock. */
    private static StringBuilder timed(LongSupplier clock, int rounds, long warmUpMillis, Runnable round) {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(warmUpMillis);
        if (warmUpMillis >= 0) {
            do {
                round.run();
            } while (System.nanoTime() < until);
        }
        StringBuilder nanos = new StringBuilder();
        for (int left = rounds; left > 0; left--) {
            long start = clock.getAsLong();
            round.run();
            nanos.append('\t').append(clock.getAsLong() - start);
        }
        return nanos;
    }

    private static void round(Subject subject, Question[] questions, boolean[] answers) {
        for (int i = 0; i < questions.length; i++) {
            Question question = questions[i];
            AuthorizationResult result = question.actions == null
                ? subject.authorizer.authorizeByResourceType(question.context, question.operation, question.type)
                : subject.authorizer.authorize(question.context, question.actions).get(0);
            answers[i] = result == AuthorizationResult.ALLOWED;
        }
    }

    private Question[] build() {
        Map<String, Subject.Context> contexts = new HashMap<>();
        List<Question> made = new ArrayList<>();
        for (String[] fields : fresh) {
            Subject.Context context = contexts.computeIfAbsent(fields[1] + '\t' + fields[2], key -> {
                try {
                    return new Subject.Context(SecurityUtils.parseKafkaPrincipal(fields[1]), fields[2], 3);
                } catch (UnknownHostException e) {
                    throw new IllegalArgumentException(e);
                }
            });
            List<Action> actions = fields.length == 5
                ? null : List.of(Subject.action(fields[3], fields[4], fields[5], 1, false, false));
            made.add(new Question(
                context, actions, AclOperation.valueOf(fields[3]), ResourceType.valueOf(fields[4])));
        }
        fresh.clear();
        return made.toArray(new Question[0]);
    }
}
