package kustos.oracle;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.Map;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.internals.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** One StandardAuthorizer with an ear at its audit log, which alone tells the rule that decided. */
final class Subject {
    private static final Logger AUDIT_LOG = Logger.getLogger("kafka.authorizer.logger");
    private static final String RULE_MARK = " based on rule ";
    private static final Listener LISTENER = new Listener();

    static {
        Logger.getLogger("").setLevel(Level.OFF);
        AUDIT_LOG.setUseParentHandlers(false);
        AUDIT_LOG.addHandler(LISTENER);
        listen(true);
    }

    final StandardAuthorizer authorizer = new StandardAuthorizer();

    Subject(String superUsers, boolean defaultAllow, boolean ready) {
        configure(superUsers, defaultAllow);
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        if (ready) authorizer.completeInitialLoad();
    }

    void configure(String superUsers, boolean defaultAllow) {
        authorizer.configure(Map.of(
            "super.users", superUsers,
            "allow.everyone.if.no.acl.found", Boolean.toString(defaultAllow),
            "node.id", "1"));
    }

    /** Turns the audit log on, or off as a benchmark wants it: no line is then built. */
    static void listen(boolean on) {
        AUDIT_LOG.setLevel(on ? Level.FINEST : Level.OFF);
    }

    String ask(String principal, String host, String operation, String type, String name)
            throws UnknownHostException {
        Context context = new Context(principal(principal), host, 3);
        AuthorizationResult result =
            authorizer.authorize(context, List.of(action(operation, type, name, 1, true, true))).get(0);
        String line = LISTENER.line;
        return result + "\t" + line.substring(line.indexOf(RULE_MARK) + RULE_MARK.length());
    }

    String any(String principal, String host, String operation, String type) throws UnknownHostException {
        Context context = new Context(principal(principal), host, 3);
        return authorizer.authorizeByResourceType(
            context, AclOperation.valueOf(operation), ResourceType.valueOf(type)).toString();
    }

    /** `type|name`, which lets a type hold a colon, or else Kafka's own `type:name`. */
    static KafkaPrincipal principal(String text) {
        int bar = text.indexOf('|');
        return bar < 0
            ? SecurityUtils.parseKafkaPrincipal(text)
            : new KafkaPrincipal(text.substring(0, bar), text.substring(bar + 1));
    }

    String audit(String[] fields) throws UnknownHostException {
        Context context = new Context(new KafkaPrincipal(fields[1], fields[2]), fields[3],
            Integer.parseInt(fields[7]));
        LISTENER.line = null;
        authorizer.authorize(context, List.of(action(fields[4], fields[5], fields[6],
            Integer.parseInt(fields[8]), Boolean.parseBoolean(fields[9]), Boolean.parseBoolean(fields[10]))));
        return LISTENER.level + "\t" + LISTENER.line;
    }

    static Action action(
            String operation, String type, String name, int count, boolean logIfAllowed, boolean logIfDenied) {
        ResourcePattern pattern = new ResourcePattern(ResourceType.valueOf(type), name, PatternType.LITERAL);
        return new Action(AclOperation.valueOf(operation), pattern, count, logIfAllowed, logIfDenied);
    }

    /** Remembers the last audit line, with its level in Kafka's words. */
    private static final class Listener extends Handler {
        private String level;
        private String line;

        @Override
        public void publish(LogRecord entry) {
            int value = entry.getLevel().intValue();
            level = value >= Level.INFO.intValue() ? "INFO" : value >= Level.FINE.intValue() ? "DEBUG" : "TRACE";
            line = entry.getMessage();
        }

        @Override
        public void flush() { }

        @Override
        public void close() { }
    }

    record Context(KafkaPrincipal principal, InetAddress clientAddress, int requestType)
            implements AuthorizableRequestContext {
        Context(KafkaPrincipal principal, String host, int requestType) throws UnknownHostException {
            this(principal, InetAddress.getByName(host), requestType);
        }

        @Override
        public String listenerName() {
            return "SASL_PLAINTEXT";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.SASL_PLAINTEXT;
        }

        @Override
        public int requestVersion() {
            return 0;
        }

        @Override
        public String clientId() {
            return "oracle";
        }

        @Override
        public int correlationId() {
            return 0;
        }
    }
}
