import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.FileWriter;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Follows a server with Debezium's embedded engine, a snapshot first, and writes each change as JSON.
 *
 * <p>Arguments: PORT FLAVOR DATABASE FOLDER. The folder holds what it has written (`changes`) and where
 * it is, from where a later one goes on. It ends in order when it is asked to.
 */
public class DebeziumReader {
    public static void main(String[] arguments) throws Exception {
        String port = arguments[0], database = arguments[2], folder = arguments[3];
        boolean isMariadb = arguments[1].equals("mariadb");
        Properties settings = new Properties();
        settings.setProperty("name", "reader");
        settings.setProperty(
                "connector.class",
                isMariadb
                        ? "io.debezium.connector.mariadb.MariaDbConnector"
                        : "io.debezium.connector.mysql.MySqlConnector");
        settings.setProperty(
                "offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore");
        settings.setProperty("offset.storage.file.filename", folder + "/offsets");
        settings.setProperty("offset.flush.interval.ms", "0");
        settings.setProperty("database.hostname", "127.0.0.1");
        settings.setProperty("database.port", port);
        settings.setProperty("database.user", "root");
        settings.setProperty("database.password", "");
        settings.setProperty("database.server.id", "5432");
        settings.setProperty("database.ssl.mode", isMariadb ? "disable" : "disabled");
        settings.setProperty("database.include.list", database);
        settings.setProperty("topic.prefix", "reader");
        settings.setProperty("snapshot.mode", "initial");
        settings.setProperty("tombstones.on.delete", "false");
        settings.setProperty("include.schema.changes", "false");
        settings.setProperty("key.converter.schemas.enable", "false");
        settings.setProperty("value.converter.schemas.enable", "false");
        settings.setProperty(
                "schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory");
        settings.setProperty("schema.history.internal.file.filename", folder + "/history");
        FileWriter changes = new FileWriter(folder + "/changes", true);
        DebeziumEngine<ChangeEvent<String, String>> engine =
                DebeziumEngine.create(Json.class)
                        .using(settings)
                        .using(
                                (isDone, message, error) -> {
                                    System.out.println("ended: " + message);
                                    if (error != null) {
                                        error.printStackTrace(System.out);
                                    }
                                })
                        .notifying(
                                one -> {
                                    try {
                                        changes.write(one.value() + "\n");
                                        changes.flush();
                                    } catch (java.io.IOException error) {
                                        throw new RuntimeException(error);
                                    }
                                })
                        .build();
        ExecutorService thread = Executors.newSingleThreadExecutor();
        Runtime.getRuntime()
                .addShutdownHook(
                        new Thread(
                                () -> {
                                    try {
                                        engine.close();
                                        thread.awaitTermination(20, TimeUnit.SECONDS);
                                    } catch (Exception error) {
                                        error.printStackTrace(System.out);
                                    }
                                }));
        thread.execute(engine);
        thread.shutdown();
        thread.awaitTermination(1, TimeUnit.DAYS);
        System.exit(1);
    }
}
