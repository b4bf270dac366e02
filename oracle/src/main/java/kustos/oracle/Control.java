package kustos.oracle;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.server.common.MetadataVersion;

/** What Kafka's controller says of a new ACL and of a filter, and which ACLs a filter finds. */
final class Control {
    private static final String SEPARATOR = "\u001f";
    private static final Method VALIDATE_NEW_ACL = method("validateNewAcl", AclBinding.class, boolean.class);
    private static final Method VALIDATE_FILTER = method("validateFilter", AclBindingFilter.class);

    private Control() { }

    /** Fields: metadata.version level, then type name pattern principal host operation permission. */
    static String newAcl(String[] fields) throws ReflectiveOperationException {
        AclBinding binding;
        try {
            binding = new AclBinding(
                new ResourcePattern(
                    ResourceType.valueOf(fields[2]), fields[3], PatternType.valueOf(fields[4])),
                new AccessControlEntry(
                    fields[5], fields[6], AclOperation.valueOf(fields[7]),
                    AclPermissionType.valueOf(fields[8])));
        } catch (IllegalArgumentException e) {
            return "IMPOSSIBLE";
        }
        MetadataVersion version = MetadataVersion.fromFeatureLevel(Short.parseShort(fields[1]));
        return verdict(VALIDATE_NEW_ACL, binding, version.isCidrAclSupported());
    }

    /** Fields: type name pattern principal host operation permission; texts are `-` for null or `=text`. */
    static String acls(Subject subject, String[] fields) throws ReflectiveOperationException {
        AclBindingFilter filter = new AclBindingFilter(
            new ResourcePatternFilter(
                ResourceType.valueOf(fields[1]), text(fields[2]), PatternType.valueOf(fields[3])),
            new AccessControlEntryFilter(
                text(fields[4]), text(fields[5]), AclOperation.valueOf(fields[6]),
                AclPermissionType.valueOf(fields[7])));
        List<String> found = new ArrayList<>();
        for (AclBinding binding : subject.authorizer.acls(filter)) {
            found.add(StandardAcl.fromAclBinding(binding).toString());
        }
        return verdict(VALIDATE_FILTER, filter) + "\t" + String.join(SEPARATOR, found);
    }

    private static String text(String field) {
        return field.equals("-") ? null : field.substring(1);
    }

    private static String verdict(Method validate, Object... arguments) throws ReflectiveOperationException {
        try {
            validate.invoke(null, arguments);
            return "OK";
        } catch (InvocationTargetException e) {
            Throwable cause = e.getCause();
            return cause.getClass().getSimpleName() + ": " + cause.getMessage();
        }
    }

    /** AclControlManager shows its checks to its own package only. */
    private static Method method(String name, Class<?>... parameters) {
        try {
            Class<?> manager = Class.forName("org.apache.kafka.controller.AclControlManager");
            Method method = manager.getDeclaredMethod(name, parameters);
            method.setAccessible(true);
            return method;
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
