package kustos.oracle;

import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.utils.internals.SecurityUtils;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Times kept questions on one thread. Contexts and actions are built before the clock starts and no audit
 * line is built, so that what is measured is the decision and nothing that a caller could save.
 */
final class Timing {
    private final List<String[]> kept = new ArrayList<>();

    private record Question(
        Subject.Context context, List<Action> actions, AclOperation operation, ResourceType type) { }

    void keep(String[] fields) {
        kept.add(fields);
    }

    String time(Subject subject, int rounds, long warmUpMillis) {
        Question[] questions = build();
        Subject.listen(false);
        boolean[] answers = new boolean[questions.length];
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(warmUpMillis);
        do {
            round(subject, questions, answers);
        } while (System.nanoTime() < until);
        StringBuilder reply = new StringBuilder();
        StringBuilder nanos = new StringBuilder();
        for (int left = rounds; left > 0; left--) {
            long start = System.nanoTime();
            round(subject, questions, answers);
            nanos.append('\t').append(System.nanoTime() - start);
        }
        for (boolean answer : answers) reply.append(answer ? 'A' : 'D');
        Subject.listen(true);
        kept.clear();
        return reply.append(nanos).toString();
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
        List<Question> questions = new ArrayList<>();
        for (String[] fields : kept) {
            Subject.Context context = contexts.computeIfAbsent(fields[1] + '\t' + fields[2], key -> {
                try {
                    return new Subject.Context(SecurityUtils.parseKafkaPrincipal(fields[1]), fields[2], 3);
                } catch (UnknownHostException e) {
                    throw new IllegalArgumentException(e);
                }
            });
            List<Action> actions = fields.length == 5
                ? null : List.of(Subject.action(fields[3], fields[4], fields[5], 1, false, false));
            questions.add(new Question(
                context, actions, AclOperation.valueOf(fields[3]), ResourceType.valueOf(fields[4])));
        }
        return questions.toArray(new Question[0]);
    }
}
