import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.resource.ResourceType;

/** Prints what a release of Kafka has, one fact a line: kind, name, value, with tabs between them. */
public class ReleaseFacts {
    private static final String[] CONFIGS = {
        "org.apache.kafka.server.config.AbstractKafkaConfig",
        "org.apache.kafka.storage.internals.log.LogConfig",
        "org.apache.kafka.coordinator.group.GroupConfig",
        "org.apache.kafka.clients.admin.AdminClientConfig",
        "org.apache.kafka.clients.consumer.ConsumerConfig",
        "org.apache.kafka.clients.producer.ProducerConfig",
    };

    private static ConfigDef definition(Class<?> type) throws ReflectiveOperationException {
        for (Method method : type.getDeclaredMethods())
            if (Modifier.isStatic(method.getModifiers()) && method.getParameterCount() == 0
                    && ConfigDef.class.isAssignableFrom(method.getReturnType())) {
                method.setAccessible(true);
                return (ConfigDef) method.invoke(null);
            }
        for (Field field : type.getDeclaredFields())
            if (Modifier.isStatic(field.getModifiers()) && ConfigDef.class.isAssignableFrom(field.getType())) {
                field.setAccessible(true);
                return (ConfigDef) field.get(null);
            }
        return new ConfigDef();
    }

    public static void main(String[] arguments) throws ReflectiveOperationException {
        for (Errors error : Errors.values())
            System.out.println("error\t" + error + "\t" + error.code());
        for (AclOperation operation : AclOperation.values())
            System.out.println("operation\t" + operation + "\t" + operation.code());
        for (ResourceType type : ResourceType.values())
            System.out.println("resource type\t" + type + "\t" + type.code());
        for (String name : CONFIGS) {
            Class<?> type;
            try {
                type = Class.forName(name);
            } catch (ClassNotFoundException missing) {
                continue;
            }
            for (ConfigDef.ConfigKey key : definition(type).configKeys().values())
                System.out.println(type.getSimpleName() + " setting\t" + key.name + "\t" + key.type + ", "
                        + (key.hasDefault() ? key.defaultValue : "no default"));
        }
    }
}
